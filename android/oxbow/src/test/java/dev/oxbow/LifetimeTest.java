package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.Test;

/** Closing, threads, and what happens to those who do it wrong. */
public class LifetimeTest extends Fixture {
    @Test
    public void closedObjectsRefuseEverything() {
        Model model = demo();
        Session session = Session.create(model);
        Tokenizer tokenizer = Tokenizer.create(model);
        Sampler sampler = Sampler.create(model, new SamplerOptions());
        Generator generator = Generator.create(session);
        Session open = Session.create(model);
        open.feed(1);
        for (NativeObject object : new NativeObject[] {generator, sampler, tokenizer, session, model}) {
            object.close();
            object.close();
        }
        ByteBuffer buffer = direct(1 << 20);
        Runnable[] calls = {
            () -> session.feed(1),
            () -> session.feed(new int[3]),
            () -> session.run(new int[3], 0, 1),
            () -> session.run(new int[3], 0, 1, buffer, 1),
            () -> session.sample(sampler),
            () -> session.readLogits(buffer),
            () -> session.encode(new int[3]),
            session::reset,
            session::getPosition,
            session::getArenaBytes,
            session::getBackendBytes,
            session::getStateBytes,
            () -> session.save(buffer),
            () -> session.load(buffer),
            () -> session.checkpoint(buffer),
            () -> session.rewind(buffer),
            () -> open.sample(sampler),
            () -> sampler.accept(1),
            () -> sampler.pick(buffer),
            () -> tokenizer.encode("a"),
            () -> tokenizer.decode(new int[1]),
            () -> generator.generateText("a"),
            () -> generator.generate(new int[1], piece -> true, new Cancellation()),
            model::getArchitecture,
            model::getChatBefore,
            () -> model.endsText(1),
            () -> model.getTokenBytes(1),
            model::checkWeights,
            () -> model.getArenaBytes(new SessionOptions()),
            model::getAdvisedSampling,
            () -> Session.create(model),
            () -> Tokenizer.create(model),
            () -> Generator.create(open),
            () -> BeamSearch.create(session, new BeamOptions()),
            () -> session.runBatch(new int[1][1], buffer),
            session::getPipelineCache,
            session::getTensorNames,
            session::getStepProviders,
            session::getNpuReport,
            () -> session.copyFrom(open),
            () -> open.copyFrom(session),
            () -> Session.runTogether(new Session[] {open, session}, new int[2]),
            () -> Session.create(model, new SessionOptions().lender(session)),
            () -> session.getTensor("a"),
            () -> session.readTensor("a", buffer),
            () -> session.getDraftBytes(1),
            () -> session.draft(1),
            () -> session.keep(1),
            session::cancel,
            () -> model.getPlan(new SessionOptions()),
            model::getAdvisedBeams,
            model::getEntries,
            model::getAllMetadata,
        };
        for (Runnable call : calls) {
            String words = refused(OxbowException.CLOSED, call);
            assertTrue(words, words.contains("closed"));
        }
        open.close();
    }

    @Test
    public void objectsMayBeClosedInAnyOrder() throws IOException {
        Model model = demo();
        Session session = Session.create(model);
        Generator generator = Generator.create(session, Tool.options());
        model.close();
        assertEquals(read("demo.txt"), generator.generateText(read("prompt.txt")));
        session.close();
        refused(OxbowException.CLOSED, () -> generator.generateText("a"));
        generator.close();
    }

    /** Numbers that name nothing, nothing any more, or something of another kind. */
    @Test
    public void wrongHandlesAreRefused() throws Exception {
        Method position = Session.class.getDeclaredMethod("position", long.class);
        position.setAccessible(true);
        try (Model model = demo();
                Session session = Session.create(model)) {
            Session closed = Session.create(model);
            long stale = closed.handle();
            closed.close();
            try (Session inTheSameCell = Session.create(model)) {
                assertEquals((int) stale, (int) inTheSameCell.handle());
                long[] wrong = {
                    0, -1, 1, Long.MAX_VALUE, Long.MIN_VALUE, stale, model.handle(), session.handle() + 1000,
                    session.handle() ^ (1L << 32)
                };
                for (long handle : wrong) {
                    try {
                        position.invoke(session, handle);
                        throw new AssertionError("handle " + handle);
                    } catch (InvocationTargetException e) {
                        assertEquals(OxbowException.CLOSED, ((OxbowException) e.getCause()).getCode());
                    }
                }
            }
        }
    }

    /** Generates on another thread and stays inside the first call of the listener until told to go on. */
    private static final class Held {
        private final CountDownLatch inside = new CountDownLatch(1);
        private final CountDownLatch goOn = new CountDownLatch(1);
        private final ExecutorService thread = Executors.newSingleThreadExecutor();
        private final Future<Generation> result;

        Held(Generator generator) throws InterruptedException {
            result = thread.submit(() -> generator.generate("The river", this::hold));
            inside.await();
        }

        private boolean hold(String piece) {
            inside.countDown();
            try {
                goOn.await();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            return true;
        }

        Generation finish() throws Exception {
            goOn.countDown();
            Generation generation = result.get();
            thread.shutdown();
            return generation;
        }
    }

    @Test
    public void twoThreadsAtOnceAreRefused() throws Exception {
        try (Model model = demo();
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options());
                Generator other = Generator.create(session, Tool.options())) {
            Held held = new Held(generator);
            String words = refused(OxbowException.BUSY, () -> session.feed(1));
            assertTrue(words, words.contains("session is in use"));
            refused(OxbowException.BUSY, session::getPosition);
            refused(OxbowException.BUSY, session::reset);
            refused(OxbowException.BUSY, () -> generator.generateText("a"));
            refused(OxbowException.BUSY, () -> other.generateText("a"));
            // The model serves everybody.
            model.checkWeights();
            assertEquals(Generation.Reason.MAX_TOKENS, held.finish().getReason());
            session.reset();
            assertEquals(0, session.getPosition());
        }
    }

    @Test
    public void closingUnderARunningCallWaitsForNothingAndEndsIt() throws Exception {
        int before = Oxbow.getLivingObjects();
        Model model = demo();
        int bytes = (int) model.getArenaBytes(new SessionOptions());
        ByteBuffer arena = direct(bytes);
        Session session = Session.create(model, new SessionOptions().arena(arena));
        Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(Long.MAX_VALUE));
        Held held = new Held(generator);
        session.close();
        model.close();
        refused(OxbowException.CLOSED, session::getPosition);
        // The call still runs in the arena, so nobody gets it yet.
        try (Model again = demo()) {
            SessionOptions options = new SessionOptions().arena(arena);
            refused(OxbowException.INVALID_ARGUMENT, () -> Session.create(again, options));
            generator.close();
            assertTrue(Oxbow.getLivingObjects() > before + 1);
            assertEquals(Generation.Reason.CANCELLED, held.finish().getReason());
            assertEquals(before + 1, Oxbow.getLivingObjects());
            Session.create(again, options).close();
        }
    }

    @Test
    public void aListenerMayCloseEverything() {
        Model model = demo();
        Session session = Session.create(model);
        Generator generator = Generator.create(session);
        Generation result =
                generator.generate(
                        "The river",
                        piece -> {
                            generator.close();
                            session.close();
                            model.close();
                            return true;
                        });
        assertEquals(Generation.Reason.CANCELLED, result.getReason());
        assertEquals(1, result.getTokens());
    }

    /** Threads that use and close one session as they like get answers or refusals, never anything else. */
    @Test
    public void aRaceOfUsersAndClosersIsHarmless() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(4);
        AtomicInteger worked = new AtomicInteger();
        AtomicInteger refused = new AtomicInteger();
        try (Model model = demo()) {
            for (int round = 0; round < 50; ++round) {
                Session session = Session.create(model);
                CountDownLatch start = new CountDownLatch(1);
                List<Future<?>> all = new ArrayList<>();
                for (int i = 0; i < 4; ++i) {
                    boolean closes = i == 3;
                    all.add(
                            threads.submit(
                                    () -> {
                                        start.await();
                                        for (int n = 0; n < 20; ++n) {
                                            try {
                                                session.feed(new int[] {1, 2, 3});
                                                worked.incrementAndGet();
                                            } catch (OxbowException e) {
                                                assertTrue(e.getMessage(), e.getCode() >= OxbowException.CLOSED);
                                                refused.incrementAndGet();
                                            }
                                            if (closes && n == 10) {
                                                session.close();
                                            }
                                        }
                                        return null;
                                    }));
                }
                start.countDown();
                for (Future<?> one : all) {
                    one.get();
                }
            }
        } finally {
            threads.shutdown();
        }
        assertTrue(worked.get() > 0);
        assertTrue(refused.get() > 0);
    }

    private static void forget(Model model, int count) {
        for (int i = 0; i < count; ++i) {
            Session.create(model).feed(1);
        }
    }

    @Test
    public void forgottenObjectsAreFreedInTheEnd() throws InterruptedException {
        try (Model model = demo()) {
            int before = Oxbow.getLivingObjects();
            forget(model, 20);
            for (int i = 0; i < 100 && Oxbow.getLivingObjects() > before; ++i) {
                System.gc();
                Thread.sleep(10);
                Sampler.create(model, new SamplerOptions()).close();
            }
            assertEquals(before, Oxbow.getLivingObjects());
        }
    }

    private static void abandon(Model model, SessionOptions options) {
        Session.create(model, options);
    }

    /** The collector sees a hundred bytes of each; it is told of the others. */
    @Test
    public void forgottenMemoryDoesNotPileUpAndIsMentionedOnce() throws InterruptedException {
        List<String> warnings = new ArrayList<>();
        Handler listener =
                new Handler() {
                    @Override
                    public void publish(LogRecord line) {
                        warnings.add(line.getMessage());
                    }

                    @Override
                    public void flush() {}

                    @Override
                    public void close() {}
                };
        Logger logger = Logger.getLogger("dev.oxbow");
        logger.addHandler(listener);
        logger.setUseParentHandlers(false);
        try (Model model = demo()) {
            Cleanup.mentionAgain();
            SessionOptions options = new SessionOptions();
            long most = 0;
            long wanted = 8 * Cleanup.UNSEEN_BYTES;
            long all = 0;
            while (all < wanted) {
                abandon(model, options);
                all += model.getArenaBytes(options);
                most = Math.max(most, Oxbow.getNativeBytes());
            }
            assertTrue("held " + most, most < 3 * Cleanup.UNSEEN_BYTES);
            assertEquals(warnings.toString(), 1, warnings.size());
            assertTrue(warnings.get(0), warnings.get(0).startsWith("a Session of "));
            for (int i = 0; i < 300 && Oxbow.getLivingObjects() > 1; ++i) {
                System.gc();
                Thread.sleep(10);
                Sampler.create(model, new SamplerOptions()).close();
            }
        } finally {
            logger.removeHandler(listener);
            logger.setUseParentHandlers(true);
        }
    }

    /** More than the virtual machine has for direct buffers, unless those of closed objects can be collected. */
    @Test
    public void lentBuffersAreGivenBack() throws IOException {
        byte[] bytes = Files.readAllBytes(FILES.resolve("demo.oxb"));
        long lent = 0;
        while (lent <= 2 * Runtime.getRuntime().maxMemory()) {
            ByteBuffer file = DirectBuffers.allocate(bytes.length);
            file.put(bytes);
            file.flip();
            try (Model model = Model.open(file)) {
                ByteBuffer arena = direct((int) model.getArenaBytes(new SessionOptions()));
                Session.create(model, new SessionOptions().arena(arena)).close();
                lent += file.capacity() + arena.capacity();
            }
        }
    }

    /** Bytes of this process in physical memory. */
    private static long residentBytes() throws IOException {
        String status = new String(Files.readAllBytes(Paths.get("/proc/self/status")), StandardCharsets.UTF_8);
        String line = status.substring(status.indexOf("VmRSS:"));
        return 1024 * Long.parseLong(line.substring(6, line.indexOf("kB")).trim());
    }

    private static void openAndClose(int times) {
        for (int i = 0; i < times; ++i) {
            try (Model model = demo();
                    Session session = Session.create(model);
                    Tokenizer tokenizer = Tokenizer.create(model);
                    Sampler sampler = Sampler.create(model, new SamplerOptions());
                    Generator generator = Generator.create(session, Tool.options().stopTexts("a stop"))) {
                refused(OxbowException.INVALID_ARGUMENT, () -> session.feed(-1));
                sampler.accept(tokenizer.encode("a")[0]);
            }
        }
    }

    @Test
    public void openingAndClosingDoesNotGrow() throws IOException {
        int living = Oxbow.getLivingObjects();
        openAndClose(CYCLES / 4);
        // A leak shows every time; what the machine's compiler or a driver took meanwhile does not.
        long grown = Long.MAX_VALUE;
        for (int i = 0; i < 3 && grown >= 500L * 10000; ++i) {
            System.gc();
            long before = residentBytes();
            openAndClose(CYCLES);
            System.gc();
            grown = residentBytes() - before;
        }
        assertEquals(living, Oxbow.getLivingObjects());
        // A session alone has 400 KB; a leak of 500 bytes a cycle would show.
        assertTrue("grew by " + grown + " bytes", grown < 500L * 10000);
    }
}
