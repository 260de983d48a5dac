import dev.oxbow.Cancellation;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;
import dev.oxbow.Tokenizer;

/** Translates a text: Translate model.oxb TEXT. */
public final class Translate {
    private Translate() {}

    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model);
                Tokenizer tokenizer = Tokenizer.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(60))) {
            session.encode(tokenizer.encode(arguments[1]));
            generator.generate(
                    new int[0],
                    piece -> {
                        System.out.print(piece);
                        return true;
                    },
                    new Cancellation());
            System.out.println();
        }
    }
}
