package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.fail;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.concurrent.Callable;
import org.junit.After;
import org.junit.Before;

/** What the tests share: the models and outputs of the command line that tests/java made, and a look at leaks. */
public abstract class Fixture {
    static final Path FILES = Paths.get(System.getProperty("oxbow.files"));
    /** An emulated machine does less of what is only repetition. */
    static final int CYCLES = Integer.getInteger("oxbow.cycles", 10000);

    private int livingBefore;

    @Before
    public void countObjects() {
        livingBefore = Oxbow.getLivingObjects();
    }

    /** Every test closes what it opens. */
    @After
    public void nothingLeaks() {
        assertEquals("native objects", livingBefore, Oxbow.getLivingObjects());
    }

    static Model demo() {
        return open("demo.oxb");
    }

    static Model open(String name) {
        return Model.open(FILES.resolve(name).toString());
    }

    static String read(String name) throws IOException {
        return new String(Files.readAllBytes(FILES.resolve(name)), StandardCharsets.UTF_8);
    }

    /** Token ids with spaces between. */
    static int[] readIds(String name) throws IOException {
        String[] words = read(name).trim().split("[ ,]+");
        int[] ids = new int[words.length];
        for (int i = 0; i < ids.length; ++i) {
            ids[i] = Integer.parseInt(words[i]);
        }
        return ids;
    }

    static ByteBuffer direct(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    static ByteBuffer logitsOf(Model model) {
        return direct(model.getOutputWidth() * Float.BYTES);
    }

    /** Runs what must be refused with this code, and returns the words. */
    static String refused(int code, Callable<?> call) {
        try {
            call.call();
        } catch (OxbowException e) {
            assertEquals(e.getMessage(), code, e.getCode());
            return e.getMessage();
        } catch (Exception e) {
            throw new AssertionError("expected OxbowException " + code, e);
        }
        fail("expected OxbowException " + code);
        return "";
    }

    static String refused(int code, Runnable call) {
        return refused(
                code,
                () -> {
                    call.run();
                    return null;
                });
    }
}
