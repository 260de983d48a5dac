package dev.oxbow;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Strings cross to the native side as bytes of real UTF-8: what JNI calls UTF-8 writes emoji and NUL otherwise. */
final class Text {
    private Text() {}

    /** Refuses half a surrogate pair, which is no character and which getBytes would quietly replace. */
    static byte[] encode(String text) {
        try {
            ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            byte[] result = new byte[bytes.remaining()];
            bytes.get(result);
            return result;
        } catch (CharacterCodingException e) {
            throw OxbowException.invalid("the text has half a surrogate pair");
        }
    }

    static String decode(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
