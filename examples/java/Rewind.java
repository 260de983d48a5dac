import dev.oxbow.DirectBuffers;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;
import java.nio.ByteBuffer;

/** Reads a text once and goes on from it several times: Rewind model.oxb TEXT CONTINUATION... */
public final class Rewind {
    private Rewind() {}

    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(30))) {
            generator.add(arguments[1]);
            ByteBuffer checkpoint = DirectBuffers.allocate((int) generator.getStateBytes());
            generator.save(checkpoint);
            for (int i = 2; i < arguments.length; ++i) {
                generator.load(checkpoint);
                System.out.println(generator.generateText(arguments[i]));
            }
        }
    }
}
