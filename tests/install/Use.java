import dev.oxbow.Oxbow;

/** The installed classes and the library below them. */
public final class Use {
    public static void main(String[] args) {
        System.out.println("oxbow from Java: version " + Oxbow.getVersion());
    }
}
