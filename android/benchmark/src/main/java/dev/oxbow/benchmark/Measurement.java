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
    private final List<String> command;
    private final Phone phone;
    private Process process;
    private boolean stopped;

    Measurement(List<String> command, Phone phone) {
        this.command = command;
        this.phone = phone;
    }

    /** From any thread: ends the program, or keeps it from starting. */
    synchronized void stop() {
        stopped = true;
        if (process != null) {
            process.destroy();
        }
    }

    synchronized boolean isStopped() {
        return stopped;
    }

    private synchronized Process start() throws IOException {
        if (stopped) {
            throw new IOException("stopped before it began");
        }
        process = new ProcessBuilder(command).start();
        return process;
    }

    String run() throws IOException, InterruptedException {
        String before = phone.state();
        Process process = start();
        process.getOutputStream().close();
        // It says little on its error output before it ends, so that one after the other cannot block it.
        String report = text(process.getInputStream());
        String error = text(process.getErrorStream());
        int code = process.waitFor();
        if (code != 0) {
            return failure("exit code " + code + ": " + error.trim());
        }
        return "{\"phone_before\":" + before + ",\"phone_after\":" + phone.state() + ",\"bench\":" + report + "}";
    }

    String failure(String what) {
        return "{\"command\":" + quoted(String.join(" ", command)) + ",\"error\":" + quoted(what) + "}";
    }

    /** Under another name first: whoever finds the file finds all of it. */
    static void write(File file, String text) throws IOException {
        File part = new File(file.getPath() + ".part");
        try (FileOutputStream out = new FileOutputStream(part)) {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        }
        if (!part.renameTo(file)) {
            throw new IOException("cannot write " + file);
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
