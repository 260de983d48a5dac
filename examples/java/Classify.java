import dev.oxbow.DirectBuffers;
import dev.oxbow.Model;
import dev.oxbow.Session;
import dev.oxbow.Tokenizer;
import java.nio.ByteBuffer;

/** Tells the likeliest class of a text: Classify model.oxb TEXT. */
public final class Classify {
    private Classify() {}

    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0]);
                Session session = Session.create(model);
                Tokenizer tokenizer = Tokenizer.create(model)) {
            ByteBuffer logits = DirectBuffers.allocate(model.getOutputWidth() * Float.BYTES);
            int[] tokens = tokenizer.encode(arguments[1]);
            session.run(tokens, 0, tokens.length, logits, 1);
            int best = 0;
            for (int i = 1; i < model.getOutputWidth(); ++i) {
                if (logits.getFloat(i * Float.BYTES) > logits.getFloat(best * Float.BYTES)) {
                    best = i;
                }
            }
            System.out.println(best + " " + (best < model.getLabelCount() ? model.getLabel(best) : ""));
        }
    }
}
