package dev.oxbow;

import static org.junit.Assert.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import org.junit.Test;

/** The program of examples/java, which has no package and is therefore found by name. */
public class ExampleTest extends Fixture {
    @Test
    public void theExampleWritesText() throws Exception {
        ByteArrayOutputStream written = new ByteArrayOutputStream();
        PrintStream usual = System.out;
        System.setOut(new PrintStream(written, true, "UTF-8"));
        try {
            Method main = Class.forName("Stream").getMethod("main", String[].class);
            main.invoke(null, (Object) new String[] {FILES.resolve("demo.oxb").toString(), "And the river"});
        } finally {
            System.setOut(usual);
        }
        assertTrue(written.toString("UTF-8"), written.size() >= 100);
    }
}
