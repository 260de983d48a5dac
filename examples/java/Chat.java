import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;

/** Asks a model that was trained to answer: Chat model.oxb QUESTION... Each is a turn of one chat. */
public final class Chat {
    private Chat() {}

    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(100).chat(true))) {
            for (int i = 1; i < arguments.length; ++i) {
                System.out.println(generator.generateText(arguments[i]));
            }
        }
    }
}
