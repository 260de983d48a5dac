package dev.oxbow;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

public class ModelTest extends Fixture {
    @Rule public final TemporaryFolder folder = new TemporaryFolder();

    @Test
    public void tellsWhatItIs() throws IOException {
        try (Model model = demo()) {
            assertEquals("labml_compressive_transformer", model.getArchitecture());
            assertEquals(Task.GENERATE, model.getTask());
            assertEquals(Files.size(FILES.resolve("demo.oxb")), model.getFileBytes());
            assertEquals(model.getVocabulary(), model.getOutputWidth());
            assertEquals(0, model.getCapacity());
            assertTrue(model.hasTokenizer());
            assertTrue(model.getMaxSegment() >= 64);
            assertTrue(model.getWeightBytes() > 1_000_000 && model.getWeightBytes() < model.getFileBytes());
            assertTrue(model.getParameters() > 1_000_000);
            assertTrue(model.getMacsPerToken() > 0);
            assertTrue(model.getHash() != 0);
            assertEquals(model.getArchitecture(), model.getMetadata("architecture"));
            assertEquals(null, model.getMetadata("nothing"));
            assertEquals(Task.UNKNOWN, Task.of(99));
            assertEquals("", model.getChatBefore());
            assertEquals(0, model.getLabelCount());
            assertEquals(-1, model.getMaskToken());
            assertEquals(-1, model.getStartToken());
            assertEquals(-1, model.getPadToken());
            assertFalse(model.endsText(0));
            model.checkWeights();
            refused(OxbowException.INVALID_ARGUMENT, () -> model.getLabel(0));
            refused(OxbowException.INVALID_ARGUMENT, () -> model.getTokenBytes(model.getVocabulary()));
        }
    }

    @Test
    public void theLibraryTellsItsVersionAndBackends() {
        assertTrue(Oxbow.getVersion(), Oxbow.getVersion().matches("[0-9]+\\.[0-9]+\\.[0-9]+"));
        assertTrue(Oxbow.isBuiltIn(Backend.AUTO));
        assertTrue(Oxbow.isBuiltIn(Backend.REFERENCE));
        assertTrue(Oxbow.isBuiltIn(Backend.CPU));
    }

    @Test
    public void aModelThatAnswersTellsHowToAsk() {
        try (Model model = open("chat.oxb")) {
            assertTrue(model.getChatBefore(), model.getChatBefore().contains("[INST]"));
            assertTrue(model.getChatAfter(), model.getChatAfter().contains("[/INST]"));
            assertTrue(model.endsText(model.getEndToken()));
        }
    }

    @Test
    public void filesThatAreNoneAreRefused() throws IOException {
        File text = folder.newFile("model.oxb");
        Files.write(text.toPath(), new byte[1000]);
        refused(OxbowException.FILE_CORRUPT, () -> Model.open(text.getPath()));
        String path = folder.getRoot() + "/missing-\ud83c\udf0a.oxb";
        String words = refused(OxbowException.FILE_UNREADABLE, () -> Model.open(path));
        assertTrue(words, words.contains("\ud83c\udf0a"));
        refused(OxbowException.INVALID_ARGUMENT, () -> Model.open("a\0b"));
        refused(OxbowException.FILE_UNREADABLE, () -> Model.open(-1, 0, 64));
        refused(OxbowException.INVALID_ARGUMENT, () -> Model.open(0, -64, 64));
        refused(OxbowException.INVALID_ARGUMENT, () -> Model.open(0, 0, -1));
    }

    @Test
    public void aPathMayHaveAnyCharacter() throws IOException {
        Path path = folder.getRoot().toPath().resolve("Fluß \ud83c\udf0a.oxb");
        Files.copy(FILES.resolve("demo.oxb"), path);
        try (Model model = Model.open(path.toString())) {
            assertEquals(Files.size(path), model.getFileBytes());
        }
    }

    /** A zip with the model as a stored entry whose bytes begin `shift` behind a multiple of 64, as zipalign makes APKs. */
    private File zipWithModel(byte[] model, int shift) throws IOException {
        final int header = 30;
        String padding = "padding";
        String name = "assets/model.oxb";
        int before = header + padding.length() + header + name.length();
        File zip = folder.newFile("app" + shift + ".apk");
        try (ZipOutputStream out = new ZipOutputStream(Files.newOutputStream(zip.toPath()))) {
            addStored(out, padding, new byte[64 * 3 - before % 64 + shift]);
            addStored(out, name, model);
        }
        return zip;
    }

    private static void addStored(ZipOutputStream out, String name, byte[] bytes) throws IOException {
        ZipEntry entry = new ZipEntry(name);
        CRC32 crc = new CRC32();
        crc.update(bytes);
        entry.setMethod(ZipEntry.STORED);
        entry.setSize(bytes.length);
        entry.setCrc(crc.getValue());
        out.putNextEntry(entry);
        out.write(bytes);
        out.closeEntry();
    }

    /** The number of a descriptor that is open on the file, which only Android's classes tell. */
    private static int descriptorOf(File file) throws IOException {
        for (File link : new File("/proc/self/fd").listFiles()) {
            try {
                if (Files.readSymbolicLink(link.toPath()).equals(file.toPath().toRealPath())) {
                    return Integer.parseInt(link.getName());
                }
            } catch (IOException e) {
                // The descriptor that listed this folder is gone.
            }
        }
        throw new IOException("no descriptor of " + file);
    }

    @Test
    public void opensAtAnOffsetInsideAZip() throws IOException {
        byte[] bytes = Files.readAllBytes(FILES.resolve("demo.oxb"));
        File zip = zipWithModel(bytes, 0);
        try (ZipFile readable = new ZipFile(zip)) {
            assertEquals(bytes.length, readable.getEntry("assets/model.oxb").getCompressedSize());
        }
        long offset = offsetOf(bytes, zip);
        assertTrue(offset > 0 && offset % 64 == 0);
        Model model;
        try (RandomAccessFile file = new RandomAccessFile(zip, "r")) {
            int fd = descriptorOf(zip);
            refused(OxbowException.FILE_CORRUPT, () -> Model.open(fd, offset + 64, bytes.length - 64));
            refused(OxbowException.FILE_CORRUPT, () -> Model.open(fd, offset, Long.MAX_VALUE));
            refused(OxbowException.FILE_CORRUPT, () -> Model.open(fd, Long.MAX_VALUE - 63, bytes.length));
            model = Model.open(fd, offset, bytes.length);
        }
        // The descriptor is closed.
        try (Model open = model;
                Session session = Session.create(open);
                Generator generator = Generator.create(session, Tool.options())) {
            assertEquals(read("demo.txt"), generator.generateText(read("prompt.txt")));
        }
    }

    @Test
    public void anUnalignedEntryIsRefused() throws IOException {
        byte[] bytes = Files.readAllBytes(FILES.resolve("demo.oxb"));
        File zip = zipWithModel(bytes, 4);
        try (RandomAccessFile file = new RandomAccessFile(zip, "r")) {
            int fd = descriptorOf(zip);
            long offset = offsetOf(bytes, zip);
            String words = refused(OxbowException.INVALID_ARGUMENT, () -> Model.open(fd, offset, bytes.length));
            assertTrue(words, words.contains("64"));
        }
    }

    private static long offsetOf(byte[] bytes, File zip) throws IOException {
        byte[] all = Files.readAllBytes(zip.toPath());
        int offset = 0;
        while (!startsWith(all, offset, bytes)) {
            ++offset;
        }
        return offset;
    }

    private static boolean startsWith(byte[] all, int offset, byte[] bytes) {
        for (int i = 0; i < bytes.length; ++i) {
            if (all[offset + i] != bytes[i]) {
                return false;
            }
        }
        return true;
    }

    @Test
    public void opensABufferAndKeepsItAlive() throws IOException {
        byte[] bytes = Files.readAllBytes(FILES.resolve("demo.oxb"));
        try (Model model = Model.open(copyOf(bytes));
                Session session = Session.create(model);
                Generator generator = Generator.create(session, Tool.options())) {
            for (int i = 0; i < 3; ++i) {
                System.gc();
                direct(bytes.length);
            }
            model.checkWeights();
            assertEquals(read("demo.txt"), generator.generateText(read("prompt.txt")));
        }
    }

    private static ByteBuffer copyOf(byte[] bytes) {
        ByteBuffer buffer = DirectBuffers.allocate(bytes.length);
        buffer.put(bytes);
        buffer.flip();
        return buffer;
    }

    @Test
    public void opensAMappedFileAndAPartOfABuffer() throws IOException {
        try (FileChannel channel = FileChannel.open(FILES.resolve("demo.oxb"))) {
            ByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            try (Model model = Model.open(mapped)) {
                assertEquals(channel.size(), model.getFileBytes());
            }
        }
        byte[] bytes = Files.readAllBytes(FILES.resolve("demo.oxb"));
        ByteBuffer large = DirectBuffers.allocate(bytes.length + 200);
        large.position(128);
        large.put(bytes);
        large.limit(large.position());
        large.position(128);
        try (Model model = Model.open(large);
                Model slice = Model.open(large.slice())) {
            assertEquals(model.getHash(), slice.getHash());
            assertEquals(128, large.position());
        }
        large.limit(large.capacity());
        large.position(127);
        large.put(bytes);
        large.limit(127 + bytes.length);
        large.position(127);
        String words = refused(OxbowException.INVALID_ARGUMENT, () -> Model.open(large));
        assertTrue(words, words.contains("64"));
        refused(OxbowException.INVALID_ARGUMENT, () -> Model.open(ByteBuffer.wrap(bytes)));
    }

    @Test
    public void tokensHaveBytes() {
        try (Model model = open("gpt2.oxb");
                Tokenizer tokenizer = Tokenizer.create(model)) {
            int[] ids = tokenizer.encode("river");
            StringBuilder text = new StringBuilder();
            for (int id : ids) {
                text.append(new String(model.getTokenBytes(id), StandardCharsets.UTF_8));
            }
            assertEquals("river", text.toString());
        }
    }

    @Test
    public void advisedSamplingIsThatOfTheFile() {
        try (Model model = demo();
                Model advised = open("chat.oxb")) {
            SamplerOptions plain = model.getAdvisedSampling();
            assertEquals(0.8f, plain.getTemperature(), 0);
            assertEquals(1.0f, plain.getTopP(), 0);
            assertEquals(64, plain.getRepetitionWindow());
            SamplerOptions theirs = advised.getAdvisedSampling();
            float[] both = {theirs.getTemperature(), theirs.getTopP()};
            assertArrayEquals(new float[] {0.6f, 0.9f}, both, 0);
        }
    }
}
