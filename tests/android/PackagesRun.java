import dev.oxbow.Generator;
import dev.oxbow.GeneratorOptions;
import dev.oxbow.Model;
import dev.oxbow.Session;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/** Writes 100 tokens with the classes and the library of an AAR, from a model mapped where it lies in an APK. */
public final class PackagesRun {
    public static void main(String[] arguments) throws Exception {
        long offset = Long.parseLong(arguments[1]);
        long length = Long.parseLong(arguments[2]);
        try (RandomAccessFile apk = new RandomAccessFile(arguments[0], "r")) {
            MappedByteBuffer bytes = apk.getChannel().map(FileChannel.MapMode.READ_ONLY, offset, length);
            try (Model model = Model.open(bytes);
                    Session session = Session.create(model);
                    Generator generator = Generator.create(session, new GeneratorOptions().maxTokens(100))) {
                System.out.println(generator.generateText(arguments[3]));
            }
        }
    }
}
