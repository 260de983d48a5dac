import dev.oxbow.Generation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.LogLevel;
import dev.oxbow.Model;
import dev.oxbow.OpenOptions;
import dev.oxbow.OxbowException;
import dev.oxbow.Session;

/** All ways in which native code calls back, for classes that R8 has shrunk: a log, pieces of text, an exception. */
public final class ShrunkRun {
    public static void main(String[] arguments) {
        int[] lines = {0};
        OpenOptions options = new OpenOptions().log((level, line) -> lines[0] += level == LogLevel.INFO ? 1 : 0);
        StringBuilder text = new StringBuilder();
        int code = 0;
        Generation result;
        try (Model model = Model.open(arguments[0], options);
                Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(20))) {
            result =
                    generator.generate(
                            "And",
                            piece -> {
                                text.append(piece);
                                return true;
                            });
            session.feed(-1);
        } catch (OxbowException e) {
            code = e.getCode();
            result = null;
        }
        System.out.println(lines[0] + " lines, code " + code + ", " + (text.length() > 0 ? "text" : "no text"));
    }
}
