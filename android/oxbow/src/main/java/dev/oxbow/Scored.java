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

    /** {@return the number of the class, or the token} */
    public int getIndex() {
        return index;
    }

    /** {@return the name of the class, or its number where the file knows none; or the word} */
    public String getText() {
        return text;
    }

    /** {@return how likely it is} All that a model chooses from add up to 1. */
    public double getProbability() {
        return probability;
    }

    @Override
    public String toString() {
        return text + " " + probability;
    }
}
