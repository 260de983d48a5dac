package dev.oxbow.sample;

import android.app.Activity;
import android.os.Bundle;
import android.os.Debug;
import android.widget.Button;
import android.widget.EditText;
import android.widget.LinearLayout;
import android.widget.ScrollView;
import android.widget.TextView;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A prompt, a button, and the text as it comes, with its speed and the memory of the app below. */
public final class MainActivity extends Activity {
    private final ExecutorService worker = Executors.newSingleThreadExecutor();
    private EditText prompt;
    private Button button;
    private TextView text;
    private TextView status;
    /** Not null while a text is written. */
    private Writing writing;
    private Writer writer;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        prompt = new EditText(this);
        prompt.setHint("Prompt");
        button = new Button(this);
        text = new TextView(this);
        status = new TextView(this);
        ScrollView scroll = new ScrollView(this);
        scroll.addView(text);
        LinearLayout column = new LinearLayout(this);
        column.setOrientation(LinearLayout.VERTICAL);
        // Below the bars of the system, behind which newer ones draw apps.
        column.setFitsSystemWindows(true);
        column.addView(prompt);
        column.addView(button);
        column.addView(status);
        column.addView(scroll);
        setContentView(column);
        button.setOnClickListener(view -> startOrStop());
        showIdle();
        status.setText("Opening the model");
        worker.execute(this::open);
    }

    /** Opening maps the file and reads none of its weights, but it is a file all the same. */
    private void open() {
        try {
            writer = Writer.open(this);
            String about = writer.about();
            runOnUiThread(() -> status.setText(about));
        } catch (Exception e) {
            runOnUiThread(() -> status.setText("No model: " + e.getMessage()));
        }
    }

    private void startOrStop() {
        if (writing != null) {
            writing.cancel();
            return;
        }
        text.setText("");
        Writing next = new Writing(this::show);
        writing = next;
        button.setText("Stop");
        String words = prompt.getText().toString();
        worker.execute(
                () -> {
                    String end = writer == null ? "There is no model" : writer.write(words, next);
                    runOnUiThread(
                            () -> {
                                writing = null;
                                showIdle();
                                status.setText(end);
                            });
                });
    }

    /** Called by the worker with each piece. */
    private void show(String piece, double tokensPerSecond) {
        String line =
                String.format(
                        Locale.ROOT,
                        "%.1f pieces/s, native heap %d KiB",
                        tokensPerSecond,
                        Debug.getNativeHeapAllocatedSize() / 1024);
        runOnUiThread(
                () -> {
                    text.append(piece);
                    status.setText(line);
                });
    }

    private void showIdle() {
        button.setText("Write");
    }

    @Override
    protected void onDestroy() {
        if (writing != null) {
            writing.cancel();
        }
        worker.execute(
                () -> {
                    if (writer != null) {
                        writer.close();
                    }
                });
        worker.shutdown();
        super.onDestroy();
    }
}
