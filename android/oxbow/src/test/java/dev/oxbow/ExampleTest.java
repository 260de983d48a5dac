package dev.oxbow;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.junit.Test;

/** The programs of examples/java, which have no package and are therefore found by name. */
public class ExampleTest extends Fixture {
    private static String run(String name, String model, String... arguments) throws Exception {
        String[] all = new String[arguments.length + 1];
        all[0] = FILES.resolve(model).toString();
        System.arraycopy(arguments, 0, all, 1, arguments.length);
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        PrintStream usual = System.out;
        System.setOut(new PrintStream(written, true, "UTF-8"));
        try {
            Method main = Class.forName(name).getMethod("main", String[].class);
            main.invoke(null, (Object) all);
        } finally {
            System.setOut(usual);
        }
        return written.toString("UTF-8");
    }

    @Test
    public void theyWriteWhatTheCommandLineWrites() throws Exception {
        assertEquals(read("example.generate.txt") + "\n", run("Generate", "demo.oxb", "And the river"));
        assertEquals(read("example.chat.txt"), run("Chat", "talk.oxb", "Where is it?", "And why?"));
        assertEquals(read("example.translate.txt") + "\n", run("Translate", "t5.oxb", "The river is long."));
    }

    @Test
    public void aTextGoesOnFromAFile() throws Exception {
        String state = FILES.resolve("example.state").toString();
        String text = run("Resume", "demo.oxb", state, "And the river") + run("Resume", "demo.oxb", state);
        assertEquals(read("example.generate.txt"), text);
        // And where the command line left off.
        Files.copy(FILES.resolve("example.cut.state"), FILES.resolve("copied.state"),
                StandardCopyOption.REPLACE_EXISTING);
        text = read("example.cut.txt") + run("Resume", "demo.oxb", FILES.resolve("copied.state").toString());
        assertEquals(read("example.generate.txt"), text);
    }

    @Test
    public void aTextIsReadOnceAndContinuedTwice() throws Exception {
        String once = run("Rewind", "demo.oxb", "And the river", " was");
        String all = run("Rewind", "demo.oxb", "And the river", " was", " rose", " was");
        assertTrue(all, all.startsWith(once) && all.endsWith(once) && all.length() > 2 * once.length());
    }

    @Test
    public void aTextBecomesAClassAndNumbers() throws Exception {
        assertTrue(run("Classify", "bert.oxb", "The river").matches("[0-9]+ .*\n"));
        assertTrue(run("Embed", "bert.oxb", "The river").split(" ").length > 2);
    }
}
