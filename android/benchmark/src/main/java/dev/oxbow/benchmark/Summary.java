package dev.oxbow.benchmark;

import java.util.Locale;
import org.json.JSONException;
import org.json.JSONObject;

/** A result as people read it: the figures they look for first, and the rest in lines. */
final class Summary {
    /** Empty when there are no figures in it. */
    final String words;
    final String rest;

    Summary(String result) {
        String first;
        String lines;
        try {
            JSONObject all = new JSONObject(result);
            JSONObject bench = all.optJSONObject("bench");
            first = bench == null ? "It failed: " + all.optString("error") : words(all, bench);
            // This class writes every slash with a backslash before it.
            lines = all.toString(2).replace("\\/", "/");
        } catch (JSONException e) {
            first = "";
            lines = result;
        }
        words = first;
        rest = lines;
    }

    private static String words(JSONObject all, JSONObject bench) {
        StringBuilder text = new StringBuilder();
        String model = bench.optString("model");
        if (bench.has("architecture")) {
            add(text, "%s: %s, %,d parameters", model.substring(model.lastIndexOf('/') + 1), bench.optString("architecture"),
                    bench.optLong("parameters"));
            add(text, "Backend %s, threads: %d", bench.optString("backend"), bench.optInt("threads"));
        }
        JSONObject prefill = bench.optJSONObject("prefill");
        if (prefill != null) {
            add(text, "A prompt of %,d tokens: %s, %,.0f tokens/s", prefill.optLong("tokens"), time(prefill), rate(prefill));
        }
        JSONObject decode = bench.optJSONObject("decode");
        if (decode != null) {
            add(text, "A token: %s, %,.0f tokens/s", time(decode), rate(decode));
        }
        if (bench.has("peak_memory")) {
            add(text, "Memory of the process: %,d KiB at most", bench.optLong("peak_memory") >> 10);
        }
        addHeat(text, all);
        return text.toString();
    }

    private static void addHeat(StringBuilder text, JSONObject all) {
        JSONObject before = all.optJSONObject("phone_before");
        JSONObject after = all.optJSONObject("phone_after");
        if (before != null && after != null && before.has("thermal_status") && after.has("thermal_status")) {
            add(text, "Heat, of 0 to 6: %d before, %d after", before.optInt("thermal_status"), after.optInt("thermal_status"));
        }
    }

    private static String time(JSONObject of) {
        double seconds = of.optDouble("median_seconds");
        return seconds < 1e-3
                ? String.format(Locale.ROOT, "%.1f µs", seconds * 1e6)
                : String.format(Locale.ROOT, "%.1f ms", seconds * 1e3);
    }

    private static double rate(JSONObject of) {
        return of.optDouble("tokens_per_second");
    }

    private static void add(StringBuilder text, String line, Object... values) {
        text.append(text.length() > 0 ? "\n" : "").append(String.format(Locale.ROOT, line, values));
    }
}
