import dev.oxbow.DirectBuffers;
import dev.oxbow.Model;
import dev.oxbow.Session;
import dev.oxbow.Tokenizer;
import java.nio.ByteBuffer;
import java.util.Locale;

/** A text as numbers, the mean of its tokens' hidden states: Embed model.oxb TEXT. */
public final class Embed {
    private Embed() {}

    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model);
                Tokenizer tokenizer = Tokenizer.create(model)) {
            int[] tokens = tokenizer.encode(arguments[1]);
            int width = model.getOutputWidth();
            ByteBuffer rows = DirectBuffers.allocate(tokens.length * width * Float.BYTES);
            session.run(tokens, 0, tokens.length, rows, tokens.length);
            for (int column = 0; column < width; ++column) {
                float sum = 0;
                for (int row = 0; row < tokens.length; ++row) {
                    sum += rows.getFloat((row * width + column) * Float.BYTES);
                }
                System.out.printf(Locale.ROOT, "%.4f ", (double) sum / tokens.length);
            }
            System.out.println();
        }
    }
}
