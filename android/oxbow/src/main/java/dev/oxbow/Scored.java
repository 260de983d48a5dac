package dev.oxbow;

/** One of several answers: a class, or a word for a gap. */
public final class Scored {
    private final int index;
    private final String text;
    private final double probability;

    Scored(int index, String text, double probability) {
        this.index = index;
        this.text = text;
        this.probability = probability;
    }

    /** The number of the class, or the token. */
    public int getIndex() {
        return index;
    }

    /** The name of the class, or its number where the file knows none; or the word. */
    public String getText() {
        return text;
    }

    /** All that a model chooses from add up to 1. */
    public double getProbability() {
        return probability;
    }

    @Override
    public String toString() {
        return text + " " + probability;
    }
}
