package dev.oxbow.benchmark;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** One run of the program, and its report with the phone's state around it, as one JSON object. */
final class Measurement {
    private Measurement() {}

    static String run(List<String> command, Phone phone) throws IOException, InterruptedException {
        String before = phone.state();
        Process process = new ProcessBuilder(command).start();
        process.getOutputStream().close();
        // It says little on its error output before it ends, so that one after the other cannot block it.
        String report = text(process.getInputStream());
        String error = text(process.getErrorStream());
        int code = process.waitFor();
        if (code != 0) {
            return failure(command, "exit code " + code + ": " + error.trim());
        }
        return "{\"phone_before\":" + before + ",\"phone_after\":" + phone.state() + ",\"bench\":" + report + "}";
    }

    static String failure(List<String> command, String what) {
        return "{\"command\":" + quoted(String.join(" ", command)) + ",\"error\":" + quoted(what) + "}";
    }

    static void write(File file, String text) throws IOException {
        try (FileOutputStream out = new FileOutputStream(file)) {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    static String quoted(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ') {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }

    private static String text(InputStream in) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        byte[] buffer = new byte[8192];
        for (int count; (count = in.read(buffer)) > 0; ) {
            bytes.write(buffer, 0, count);
        }
        return new String(bytes.toByteArray(), StandardCharsets.UTF_8);
    }
}
