import dev.oxbow.Cancellation;
import dev.oxbow.DirectBuffers;
import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;
import dev.oxbow.TextListener;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;

/** Goes on where an earlier process stopped: Resume model.oxb STATE [PROMPT]. Writes 50 pieces and saves the state. */
public final class Resume {
    private static int pieces = 0;

    public static void main(String[] arguments) throws IOException {
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model);
                Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(Long.MAX_VALUE))) {
            byte[] bytes = new byte[(int) generator.getStateBytes()];
            ByteBuffer state = DirectBuffers.allocate(bytes.length);
            TextListener print =
                    piece -> {
                        System.out.print(piece);
                        return ++pieces % 50 != 0;
                    };
            if (arguments.length == 3) {
                generator.generate(arguments[2], print);
            } else {
                generator.load((ByteBuffer) state.put(Files.readAllBytes(Paths.get(arguments[1]))).flip());
                generator.generate(new int[0], print, new Cancellation());
            }
            generator.save((ByteBuffer) state.clear());
            state.get(bytes);
            Files.write(Paths.get(arguments[1]), bytes);
        }
    }
}
