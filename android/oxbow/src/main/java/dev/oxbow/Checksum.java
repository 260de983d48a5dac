package dev.oxbow;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** A SHA-256 that grows piece by piece. */
final class Checksum {
    private static final int BYTES = 32;

    private final MessageDigest digest;

    Checksum() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java has SHA-256", e);
        }
    }

    void add(byte[] piece, int count) {
        digest.update(piece, 0, count);
    }

    /** Ends the sum. */
    boolean is(byte[] wanted) {
        return MessageDigest.isEqual(digest.digest(), wanted);
    }

    static byte[] parse(String hex) {
        byte[] bytes = new byte[BYTES];
        if (!hex.matches("[0-9a-fA-F]{64}")) {
            throw OxbowException.invalid("a SHA-256 has 64 hexadecimal digits; this has '" + hex + "'");
        }
        for (int i = 0; i < BYTES; ++i) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }
}
