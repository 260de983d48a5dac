package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.Test;

/** Several streams of one model: sessions that borrow from another, run together and copied. */
public class StreamsTest extends Fixture {
    private static final int STREAMS = 3;
    private static final int STEPS = 40;

    /** The token of each stream at each step: all different. */
    private static int token(int stream, int step, int vocabulary) {
        return (7 * step + 11 * stream + 1) % vocabulary;
    }

    /** A lender and those that borrow from it, the lender first. */
    private static List<Session> family(Model model, SessionOptions options) {
        List<Session> sessions = new ArrayList<>();
        sessions.add(Session.create(model, options));
        for (int i = 1; i < STREAMS; ++i) {
            sessions.add(Session.create(model, new SessionOptions().lender(sessions.get(0))));
        }
        return sessions;
    }

    private static void close(List<Session> sessions) {
        for (Session session : sessions) {
            session.close();
        }
    }

    /** The logits of every step and stream, each stream in a session of its own. */
    private static List<ByteBuffer> alone(Model model) {
        List<ByteBuffer> all = new ArrayList<>(Collections.nCopies(STEPS * STREAMS, null));
        for (int stream = 0; stream < STREAMS; ++stream) {
            try (Session session = Session.create(model)) {
                for (int step = 0; step < STEPS; ++step) {
                    ByteBuffer logits = logitsOf(model);
                    session.run(new int[] {token(stream, step, model.getVocabulary())}, 0, 1, logits, 1);
                    all.set(step * STREAMS + stream, logits);
                }
            }
        }
        return all;
    }

    private static void assertTogetherAsAlone(Model model, List<Session> sessions) {
        List<ByteBuffer> expected = alone(model);
        Session[] array = sessions.toArray(new Session[0]);
        int width = model.getOutputWidth() * Float.BYTES;
        ByteBuffer logits = direct(STREAMS * width + 8);
        for (int step = 0; step < STEPS; ++step) {
            int[] tokens = new int[STREAMS];
            for (int i = 0; i < STREAMS; ++i) {
                tokens[i] = token(i, step, model.getVocabulary());
            }
            logits.clear();
            logits.position(8);
            Session.runTogether(array, tokens, logits);
            for (int i = 0; i < STREAMS; ++i) {
                ByteBuffer row = logits.duplicate();
                row.position(8 + i * width).limit(8 + (i + 1) * width);
                assertEquals("step " + step + ", stream " + i, expected.get(step * STREAMS + i), row.slice());
            }
        }
    }

    @Test
    public void streamsThatShareTheirMemoryGiveTheBitsOfEachAlone() {
        try (Model model = demo()) {
            for (int threads : new int[] {1, 2}) {
                List<Session> sessions = family(model, new SessionOptions().threads(threads));
                assertTogetherAsAlone(model, sessions);
                assertEquals(STEPS, sessions.get(2).getPosition());
                close(sessions);
            }
        }
    }

    @Test
    public void streamsThatShareNothingAreRunOneAfterTheOther() {
        try (Model model = demo()) {
            List<Session> sessions = new ArrayList<>();
            for (int i = 0; i < STREAMS; ++i) {
                sessions.add(Session.create(model));
            }
            assertTogetherAsAlone(model, sessions);
            close(sessions);
        }
    }

    @Test
    public void aBorrowerNeedsWhatThePlanSaysAndIsRefusedOtherModels() {
        try (Model model = demo();
                Model other = open("gpt2.oxb");
                Session lender = Session.create(model)) {
            SessionOptions options = new SessionOptions().lender(lender);
            long bytes = model.getPlan(options).getArenaBytes();
            assertEquals(model.getPlan(new SessionOptions()).getBeamBytes(), bytes);
            assertTrue(bytes + " of " + lender.getArenaBytes(), bytes < lender.getArenaBytes());
            try (Session borrower = Session.create(model, options.arena(direct((int) bytes)))) {
                assertEquals(bytes, borrower.getArenaBytes());
                borrower.feed(1);
            }
            refused(OxbowException.INVALID_ARGUMENT, () -> Session.create(other, new SessionOptions().lender(lender)));
        }
    }

    @Test
    public void aCopyGoesOnAsTheOther() throws IOException {
        int[] prompt = readIds("prompt.ids");
        try (Model model = demo();
                Session stranger = Session.create(model)) {
            List<Session> sessions = family(model, new SessionOptions());
            Session from = sessions.get(1), to = sessions.get(2);
            from.feed(prompt);
            to.feed(prompt[0]);
            to.copyFrom(from);
            assertEquals(prompt.length, to.getPosition());
            ByteBuffer expected = logitsOf(model), logits = logitsOf(model);
            from.run(prompt, 0, 1, expected, 1);
            to.run(prompt, 0, 1, logits, 1);
            assertEquals(expected, logits);
            to.copyFrom(to);
            refused(OxbowException.INVALID_ARGUMENT, () -> stranger.copyFrom(from));
            // Its logits are not those of the stream any more.
            to.feed(prompt[0]);
            to.copyFrom(from);
            refused(OxbowException.INVALID_ARGUMENT, () -> to.readLogits(logits));
            close(sessions);
        }
    }

    @Test
    public void whatCannotBeRunTogetherIsRefused() {
        try (Model model = demo();
                Model other = open("gpt2.oxb");
                Session foreign = Session.create(other)) {
            List<Session> sessions = family(model, new SessionOptions());
            Session first = sessions.get(0), second = sessions.get(1);
            Session[] two = {first, second};
            int[] tokens = {1, 2};
            ByteBuffer logits = direct(2 * model.getOutputWidth() * Float.BYTES);
            ByteBuffer small = direct(2 * model.getOutputWidth() * Float.BYTES - 4);
            Runnable[] calls = {
                () -> Session.runTogether(new Session[0], new int[0]),
                () -> Session.runTogether(two, new int[1]),
                () -> Session.runTogether(two, new int[] {1, model.getVocabulary()}, logits),
                () -> Session.runTogether(two, new int[] {1, -1}, logits),
                () -> Session.runTogether(new Session[] {first, first}, tokens),
                () -> Session.runTogether(new Session[] {first, foreign}, tokens),
                () -> Session.runTogether(Collections.nCopies(257, first).toArray(new Session[0]), new int[257]),
            };
            for (Runnable call : calls) {
                refused(OxbowException.INVALID_ARGUMENT, call);
            }
            refused(OxbowException.BUFFER_TOO_SMALL, () -> Session.runTogether(two, tokens, small));
            assertEquals(0, first.getPosition());
            assertEquals(0, second.getPosition());
            Session.runTogether(two, tokens);
            assertEquals(1, second.getPosition());
            second.close();
            refused(OxbowException.CLOSED, () -> Session.runTogether(two, tokens));
            refused(OxbowException.CLOSED, () -> first.copyFrom(second));
            refused(OxbowException.CLOSED, () -> Session.create(model, new SessionOptions().lender(second)));
            assertEquals(1, first.getPosition());
            close(sessions);
        }
    }

    /** The lender's memory serves its borrowers, so it goes with the last of them. */
    @Test
    public void aLenderMayBeClosedFirst() {
        int before = Oxbow.getLivingObjects();
        Model model = demo();
        List<Session> sessions = family(model, new SessionOptions().threads(2));
        sessions.get(0).close();
        model.close();
        Session.runTogether(new Session[] {sessions.get(1), sessions.get(2)}, new int[] {1, 2});
        assertEquals(1, sessions.get(2).getPosition());
        assertEquals(before + 4, Oxbow.getLivingObjects());
        close(sessions);
        assertEquals(before, Oxbow.getLivingObjects());
    }

    @Test
    public void sessionsThatShareTheirMemoryServeOneCallAtATime() throws Exception {
        CountDownLatch inside = new CountDownLatch(1), goOn = new CountDownLatch(1);
        try (Model model = demo();
                Session other = Session.create(model)) {
            List<Session> sessions = family(model, new SessionOptions());
            Session lender = sessions.get(0), borrower = sessions.get(1), third = sessions.get(2);
            try (Generator generator = Generator.create(borrower, Tool.options())) {
                Thread thread =
                        new Thread(
                                () ->
                                        generator.generate(
                                                "And",
                                                piece -> {
                                                    inside.countDown();
                                                    try {
                                                        goOn.await();
                                                    } catch (InterruptedException e) {
                                                        throw new AssertionError(e);
                                                    }
                                                    return false;
                                                }));
                thread.start();
                inside.await();
                for (Session session : sessions) {
                    refused(OxbowException.BUSY, () -> session.feed(1));
                    refused(OxbowException.BUSY, session::getPosition);
                }
                refused(OxbowException.BUSY, () -> third.copyFrom(lender));
                refused(OxbowException.BUSY, () -> Session.runTogether(new Session[] {other, third}, new int[] {1, 1}));
                refused(OxbowException.BUSY, () -> Session.create(model, new SessionOptions().lender(lender)));
                // None of those that were refused is left in use, and one that shares nothing never was.
                other.feed(1);
                goOn.countDown();
                thread.join();
            }
            lender.feed(1);
            third.feed(1);
            Session.runTogether(new Session[] {other, third, lender}, new int[] {1, 1, 1});
            close(sessions);
        }
    }

    @Test
    public void everyStepSaysWhoComputesIt() {
        try (Model model = demo();
                Session session = Session.create(model, new SessionOptions().backend(Backend.REFERENCE))) {
            List<String> providers = session.getStepProviders();
            assertTrue(providers.toString(), providers.size() > 10);
            assertEquals(providers.toString(), Collections.nCopies(providers.size(), "reference"), providers);
        }
    }
}
