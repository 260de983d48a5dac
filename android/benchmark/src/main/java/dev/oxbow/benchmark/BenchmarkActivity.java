package dev.oxbow.benchmark;

import android.app.Activity;
import android.os.Bundle;
import android.util.Log;
import android.view.WindowManager;
import android.widget.ScrollView;
import android.widget.TextView;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * Runs {@code oxbow bench MODEL --json} with the words of the intent's text {@code arguments}, and writes what it says,
 * with the state of the phone before and after, to the log (tag OxbowBench, one line) and to result.json. The model is
 * model.oxb in the app's folder for files that others can put there, or the intent's text {@code model}.
 */
public final class BenchmarkActivity extends Activity {
    private static final String TAG = "OxbowBench";
    /** The log cuts longer lines. */
    private static final int LOG_LINE = 3000;

    private TextView text;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        // A dark screen lets the phone slow down.
        getWindow().addFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON);
        text = new TextView(this);
        text.setText("Measuring");
        ScrollView scroll = new ScrollView(this);
        scroll.addView(text);
        setContentView(scroll);
        List<String> command = command();
        new Thread(() -> measure(command)).start();
    }

    private List<String> command() {
        File program = new File(getApplicationInfo().nativeLibraryDir, "liboxbow_cli.so");
        String model = getIntent().getStringExtra("model");
        if (model == null) {
            model = new File(getExternalFilesDir(null), "model.oxb").getPath();
        }
        List<String> command = new ArrayList<>(Arrays.asList(program.getPath(), "bench", model, "--json"));
        String arguments = getIntent().getStringExtra("arguments");
        Collections.addAll(command, arguments == null ? new String[] {} : arguments.trim().split("\\s+"));
        command.removeIf(String::isEmpty);
        return command;
    }

    private void measure(List<String> command) {
        String result;
        try {
            result = Measurement.run(command, new Phone(this));
            Measurement.write(new File(getExternalFilesDir(null), "result.json"), result);
        } catch (Exception e) {
            result = Measurement.failure(command, e.toString());
        }
        for (int at = 0; at < result.length(); at += LOG_LINE) {
            Log.i(TAG, result.substring(at, Math.min(at + LOG_LINE, result.length())));
        }
        String shown = result;
        runOnUiThread(() -> text.setText(shown));
    }
}
