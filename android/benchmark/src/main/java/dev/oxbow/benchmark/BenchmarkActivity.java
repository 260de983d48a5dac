package dev.oxbow.benchmark;

import android.app.Activity;
import android.os.Bundle;
import android.view.WindowManager;
import android.widget.LinearLayout;
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
    /** Free beside the texts, in what is a pixel on a screen of usual density. */
    private static final int SIDE = 4;

    private TextView words;
    private TextView rest;
    private Bench bench;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        // A dark screen lets the phone slow down.
        getWindow().addFlags(WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON);
        setTitle("Oxbow benchmark");
        words = new TextView(this);
        words.setText("Measuring");
        rest = new TextView(this);
        LinearLayout column = new LinearLayout(this);
        column.setOrientation(LinearLayout.VERTICAL);
        int side = (int) (SIDE * getResources().getDisplayMetrics().density);
        column.setPadding(side, 0, side, 0);
        column.addView(words);
        column.addView(rest);
        ScrollView scroll = new ScrollView(this);
        scroll.setFitsSystemWindows(true);
        scroll.addView(column);
        setContentView(scroll);
        // The same run when the screen was turned: two at once would measure each other.
        bench = (Bench) getLastNonConfigurationInstance();
        if (bench == null) {
            bench = new Bench(command(), new Phone(getApplicationContext()), getExternalFilesDir(null));
        }
        bench.show(result -> runOnUiThread(() -> show(new Summary(result))));
    }

    private void show(Summary summary) {
        words.setText(summary.words);
        rest.setText("\n" + summary.rest);
    }

    @Override
    public Object onRetainNonConfigurationInstance() {
        return bench;
    }

    @Override
    protected void onDestroy() {
        bench.show(null);
        if (!isChangingConfigurations()) {
            bench.stop();
        }
        super.onDestroy();
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
}
