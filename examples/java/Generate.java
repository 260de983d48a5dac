import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;

/** Continues a text: Generate model.oxb PROMPT. */
public final class Generate {
    private Generate() {}

    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(100))) {
            generator.generate(
                    arguments[1],
                    piece -> {
                        System.out.print(piece);
                        return true;
                    });
            System.out.println();
        }
    }
}
