package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** A store of models: cut off, killed, full, wrong bytes. */
public class ModelStoreTest {
    /** A few pieces, and a part of one. */
    private static final int BYTES = 3 * (1 << 16) + 1234;
    private static final ModelStore.Progress GO_ON = (done, all) -> true;

    /** A process that is killed runs no more code of its own. */
    private static final class Killed extends Error {
        private static final long serialVersionUID = 1L;
    }

    /** Fails at one of its calls: with an exception, or as a process that is killed half-way. */
    private static final class FailingDisk extends Disk {
        private final int failing;
        private final boolean kills;
        int calls;

        FailingDisk(int failing, boolean kills) {
            this.failing = failing;
            this.kills = kills;
        }

        private void call() throws IOException {
            if (calls++ == failing) {
                if (kills) {
                    throw new Killed();
                }
                throw new IOException("the disk failed");
            }
        }

        @Override
        void makeFolder(File folder) throws IOException {
            call();
            super.makeFolder(folder);
        }

        @Override
        RandomAccessFile open(File file) throws IOException {
            call();
            return super.open(file);
        }

        @Override
        int read(RandomAccessFile file, byte[] piece, int most) throws IOException {
            call();
            // Fewer than could be had: a file system may do that.
            return super.read(file, piece, Math.min(most, 1 << 14));
        }

        @Override
        void write(RandomAccessFile file, byte[] piece, int count) throws IOException {
            if (calls == failing) {
                super.write(file, piece, count / 2);
            }
            call();
            super.write(file, piece, count);
        }

        @Override
        void sync(RandomAccessFile file) throws IOException {
            call();
            super.sync(file);
        }

        @Override
        void rename(File from, File to) throws IOException {
            call();
            super.rename(from, to);
        }

        @Override
        void delete(File file) throws IOException {
            call();
            super.delete(file);
        }
    }

    @Rule public final TemporaryFolder temporary = new TemporaryFolder();

    private final byte[] content = new byte[BYTES];
    private File folder;
    /** Where each opening of the source began. */
    private final List<Long> opened = new ArrayList<>();

    @Before
    public void fill() {
        new Random(7).nextBytes(content);
        folder = new File(temporary.getRoot(), "models");
    }

    private ModelStore.Wanted wanted(int version, byte[] bytes) {
        try {
            StringBuilder hex = new StringBuilder();
            for (byte b : MessageDigest.getInstance("SHA-256").digest(bytes)) {
                hex.append(String.format("%02x", b));
            }
            return new ModelStore.Wanted("chat", version, bytes.length, hex.toString());
        } catch (java.security.NoSuchAlgorithmException e) {
            throw new AssertionError(e);
        }
    }

    private ModelStore.Wanted wanted() {
        return wanted(3, content);
    }

    private InputStream source(long from) {
        opened.add(from);
        return new ByteArrayInputStream(content, (int) from, BYTES - (int) from);
    }

    private void check(File file) throws IOException {
        assertArrayEquals(content, Files.readAllBytes(file.toPath()));
        assertEquals(file, new ModelStore(folder).find("chat"));
    }

    private static String failed(java.util.concurrent.Callable<?> call) {
        try {
            call.call();
        } catch (IOException e) {
            return e.getMessage();
        } catch (Exception e) {
            throw new AssertionError("expected an IOException", e);
        }
        fail("expected an IOException");
        return "";
    }

    @Test
    public void aModelIsFetchedOnceAndFound() throws IOException {
        ModelStore store = new ModelStore(folder);
        assertNull(store.find("chat"));
        assertEquals(0, store.getBytes());
        long[] last = new long[2];
        File file =
                store.fetch(
                        wanted(),
                        this::source,
                        (done, all) -> {
                            assertTrue(done > last[0]);
                            last[0] = done;
                            last[1] = all;
                            return true;
                        });
        check(file);
        assertArrayEquals(new long[] {BYTES, BYTES}, last);
        assertEquals(BYTES, store.getBytes());
        assertEquals(file, store.fetch(wanted(), this::source, GO_ON));
        assertEquals("one opening", 1, opened.size());
        assertNull(store.find("cha"));
        store.remove("other");
        check(file);
        store.remove("chat");
        assertNull(store.find("chat"));
    }

    @Test
    public void whatWasCutOffGoesOn() throws IOException {
        ModelStore store = new ModelStore(folder);
        String words = failed(() -> store.fetch(wanted(), from -> new ByteArrayInputStream(content, 0, 100000), GO_ON));
        assertEquals("chat ended after 100000 of " + BYTES + " bytes", words);
        assertNull(store.find("chat"));
        try {
            store.fetch(wanted(), this::source, (done, all) -> false);
            fail("it was stopped");
        } catch (OxbowException e) {
            assertEquals(OxbowException.CANCELLED, e.getCode());
        }
        check(store.fetch(wanted(), this::source, GO_ON));
        assertEquals(Arrays.asList(100000L, 100000L + (1 << 16)), opened);
    }

    @Test
    public void wrongBytesBeginAnew() throws IOException {
        ModelStore store = new ModelStore(folder);
        byte[] wrong = content.clone();
        wrong[77777] ^= 1;
        String words = failed(() -> store.fetch(wanted(), from -> new ByteArrayInputStream(wrong), GO_ON));
        assertTrue(words, words.contains("the checksum of chat is wrong"));
        assertNull(store.find("chat"));
        check(store.fetch(wanted(), this::source, GO_ON));
        assertEquals(Arrays.asList(0L), opened);
    }

    @Test
    public void aPartThatIsTooLongBeginsAnew() throws IOException {
        assertTrue(folder.mkdirs());
        Files.write(new File(folder, "chat-3.oxb.part").toPath(), new byte[BYTES + 1]);
        check(new ModelStore(folder).fetch(wanted(), this::source, GO_ON));
    }

    @Test
    public void aFullDiskIsToldBeforeAnythingIsFetched() throws IOException {
        ModelStore store =
                new ModelStore(
                        folder,
                        new Disk() {
                            @Override
                            long freeBytes(File of) {
                                return BYTES;
                            }
                        });
        String words = failed(() -> store.fetch(wanted(), this::source, GO_ON));
        assertTrue(words, words.contains(BYTES + " bytes free; the model needs " + BYTES + " more"));
        assertTrue(opened.isEmpty());
    }

    @Test
    public void olderVersionsGoAndNewerOnesStay() throws IOException {
        ModelStore store = new ModelStore(folder);
        File three = store.fetch(wanted(), this::source, GO_ON);
        failed(() -> store.fetch(wanted(2, content), from -> new ByteArrayInputStream(content, 0, 10), GO_ON));
        assertEquals(three, store.find("chat"));
        byte[] next = Arrays.copyOf(content, 500);
        try (Model open = Fixture.demo()) {
            // Whoever uses an older file keeps it.
            byte[] model = Files.readAllBytes(Fixture.FILES.resolve("demo.oxb"));
            File four = store.fetch(wanted(4, model), from -> new ByteArrayInputStream(model), GO_ON);
            try (Model stored = Model.open(four.getPath())) {
                File five = store.fetch(wanted(5, next), from -> new ByteArrayInputStream(next), GO_ON);
                assertFalse(four.exists());
                assertFalse(three.exists());
                assertFalse(new File(folder, "chat-2.oxb.part").exists());
                assertEquals(five, store.find("chat"));
                stored.checkWeights();
                assertEquals(open.getHash(), stored.getHash());
            }
        }
    }

    /** Every call of the disk fails once, in two ways; whoever comes next finds nothing half and goes on. */
    @Test
    public void everyFailureOfTheDiskCanBeGoneOnFrom() throws IOException {
        int calls = countCalls();
        assertTrue(calls + " calls", calls > 10);
        for (boolean kills : new boolean[] {false, true}) {
            for (int failing = 0; failing < calls; ++failing) {
                for (File old : folder.exists() ? folder.listFiles() : new File[0]) {
                    assertTrue(old.delete());
                }
                assertTrue(folder.isDirectory() || folder.mkdirs());
                // An older version, and half of this one.
                Files.write(new File(folder, "chat-1.oxb").toPath(), new byte[10]);
                Files.write(new File(folder, "chat-3.oxb.part").toPath(), Arrays.copyOf(content, 90000));
                FailingDisk disk = new FailingDisk(failing, kills);
                ModelStore store = new ModelStore(folder, disk);
                try {
                    store.fetch(wanted(), this::source, GO_ON);
                    fail("call " + failing + " failed unheard");
                } catch (IOException e) {
                    assertEquals("the disk failed", e.getMessage());
                } catch (Killed e) {
                    assertTrue(kills);
                }
                File there = store.find("chat");
                assertTrue("the old one or all of the new one", there.length() == 10 || there.length() == BYTES);
                ModelStore next = new ModelStore(folder);
                check(next.fetch(wanted(), this::source, GO_ON));
                assertEquals(BYTES, next.getBytes());
            }
        }
    }

    /** Of a run in which nothing fails. */
    private int countCalls() throws IOException {
        File other = temporary.newFolder();
        Files.write(new File(other, "chat-1.oxb").toPath(), new byte[10]);
        Files.write(new File(other, "chat-3.oxb.part").toPath(), Arrays.copyOf(content, 90000));
        FailingDisk disk = new FailingDisk(-1, false);
        new ModelStore(other, disk).fetch(wanted(), this::source, GO_ON);
        return disk.calls;
    }

    @Test
    public void twoThreadsFetchOnce() throws Exception {
        ModelStore store = new ModelStore(folder);
        Thread other =
                new Thread(
                        () -> {
                            try {
                                store.fetch(wanted(), this::source, GO_ON);
                            } catch (IOException e) {
                                throw new AssertionError(e);
                            }
                        });
        other.start();
        File file = store.fetch(wanted(), this::source, GO_ON);
        other.join();
        check(file);
        assertEquals(1, opened.size());
    }

    @Test
    public void whatCannotBeAFileIsRefused() {
        String sum = String.format("%064d", 0);
        for (String name : new String[] {"", "../chat", "Chat", "chat/1", "chat-1", String.format("%065d", 1)}) {
            Fixture.refused(OxbowException.INVALID_ARGUMENT, () -> new ModelStore.Wanted(name, 1, 1, sum));
        }
        Fixture.refused(OxbowException.INVALID_ARGUMENT, () -> new ModelStore.Wanted("chat", -1, 1, sum));
        Fixture.refused(OxbowException.INVALID_ARGUMENT, () -> new ModelStore.Wanted("chat", 1, 0, sum));
        Fixture.refused(OxbowException.INVALID_ARGUMENT, () -> new ModelStore.Wanted("chat", 1, 1, "12"));
        Fixture.refused(OxbowException.INVALID_ARGUMENT, () -> new ModelStore.Wanted("chat", 1, 1, sum.replace('0', 'x')));
    }
}
