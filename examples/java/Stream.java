import dev.oxbow.Generation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;
import dev.oxbow.SessionOptions;

/**
 * Reads a prompt and writes what the model continues it with, as it comes.
 *
 * <pre>java -Djava.library.path=build/lib -cp build/java/classes examples/java/Stream.java model.oxb "In the beginning"</pre>
 */
public final class Stream {
    private Stream() {}

    public static void main(String[] arguments) {
        if (arguments.length != 2) {
            System.err.println("usage: Stream model.oxb PROMPT");
            System.exit(2);
        }
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model, new SessionOptions().threads(2));
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(100))) {
            Generation result =
                    generator.generate(
                            arguments[1],
                            piece -> {
                                System.out.print(piece);
                                return true;
                            });
            System.out.println();
            System.err.println(result + "; arena " + session.getArenaBytes() + " bytes");
        }
    }
}
