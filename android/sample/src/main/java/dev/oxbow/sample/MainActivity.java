package dev.oxbow.sample;

import android.app.Activity;
import android.content.Intent;
import android.os.Bundle;
import android.widget.Button;
import android.widget.EditText;
import android.widget.LinearLayout;
import android.widget.ScrollView;
import android.widget.TextView;
import java.util.concurrent.atomic.AtomicBoolean;

/** A prompt, a button, and the text as it comes, with its speed and the memory of the library below. */
public final class MainActivity extends Activity {
    private static final String PROMPT = "prompt";
    private static final String TEXT = "text";
    private static final String PAUSED = "paused";

    /** Of what the system takes for usual. */
    private static final float LARGE_TEXT = 1.3f;
    /** Free beside texts, in what is a pixel on a screen of usual density. */
    private static final int SIDE = 4;

    private WritingModel model;
    private EditText prompt;
    private Button button;
    private Button threads;
    private Button backend;
    private TextView text;
    private TextView status;
    /** Which text is on the screen, and how much of it. */
    private int shownNumber = -1;
    private int shownCharacters;
    /** However many pieces come between two frames, they are drawn once. */
    private final AtomicBoolean frameWanted = new AtomicBoolean();

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        prompt = new EditText(this);
        prompt.setHint("Prompt");
        button = new Button(this);
        threads = new Button(this);
        backend = new Button(this);
        Button measure = new Button(this);
        measure.setText("Chart");
        text = new TextView(this);
        status = new TextView(this);
        int side = (int) (SIDE * getResources().getDisplayMetrics().density);
        text.setPadding(side, 0, side, 0);
        status.setPadding(side, 0, side, 0);
        ScrollView scroll = new ScrollView(this);
        scroll.addView(text);
        LinearLayout row = new LinearLayout(this);
        // Four with large text have no room side by side.
        if (getResources().getConfiguration().fontScale > LARGE_TEXT) {
            row.setOrientation(LinearLayout.VERTICAL);
        }
        for (Button one : new Button[] {button, threads, backend, measure}) {
            row.addView(one);
        }
        LinearLayout column = new LinearLayout(this);
        column.setOrientation(LinearLayout.VERTICAL);
        // Below the bars of the system, behind which newer ones draw apps.
        column.setFitsSystemWindows(true);
        column.addView(prompt);
        column.addView(row);
        column.addView(status);
        column.addView(scroll);
        setContentView(column);
        button.setOnClickListener(view -> startOrStop());
        threads.setOnClickListener(view -> change(Settings::nextThreads));
        backend.setOnClickListener(view -> change(Settings::nextBackend));
        measure.setOnClickListener(view -> startActivity(new Intent(this, MeasureActivity.class)));
        if (state != null) {
            prompt.setText(state.getString(PROMPT, ""));
        }
        // The same model when the screen was turned.
        model = (WritingModel) getLastNonConfigurationInstance();
        if (model == null) {
            String before = state == null ? "" : state.getString(TEXT, "");
            boolean paused = state != null && state.getBoolean(PAUSED);
            model = new WritingModel(this, before, paused);
        }
        model.show(this::wantFrame);
        draw();
    }

    private void startOrStop() {
        if (model.isBusy()) {
            model.stop();
        } else {
            model.start(prompt.getText().toString());
        }
    }

    /** What one of the buttons does to the settings. */
    private interface Change {
        void of(Settings settings);
    }

    private void change(Change what) {
        try {
            what.of(model.settings());
            model.useSettings();
        } catch (LinkageError e) {
            // Without the native library there is nothing to choose; the status says so.
        }
        draw();
    }

    /** Called on any thread. */
    private void wantFrame() {
        if (frameWanted.compareAndSet(false, true)) {
            text.postOnAnimation(this::draw);
        }
    }

    private void draw() {
        frameWanted.set(false);
        int number = model.textNumber();
        if (number != shownNumber) {
            text.setText("");
            shownCharacters = 0;
            shownNumber = number;
        }
        String more = model.textFrom(shownCharacters);
        if (!more.isEmpty()) {
            text.append(more);
            shownCharacters += more.length();
        }
        button.setText(model.isBusy() ? "Stop" : "Write");
        threads.setText("Threads: " + model.settings().threads());
        backend.setText(model.settings().backend().name());
        status.setText(model.status());
    }

    @Override
    public Object onRetainNonConfigurationInstance() {
        return model;
    }

    @Override
    protected void onSaveInstanceState(Bundle state) {
        super.onSaveInstanceState(state);
        state.putString(PROMPT, prompt.getText().toString());
        state.putString(TEXT, model.textFrom(0));
        // Busy too: versions before 28 ask before they stop the activity.
        state.putBoolean(PAUSED, model.isPaused() || model.isBusy());
    }

    @Override
    protected void onStart() {
        super.onStart();
        model.resume();
    }

    @Override
    protected void onStop() {
        if (!isChangingConfigurations()) {
            model.pause();
        }
        super.onStop();
    }

    @Override
    public void onTrimMemory(int level) {
        super.onTrimMemory(level);
        if (level >= TRIM_MEMORY_BACKGROUND) {
            model.shrink();
        }
    }

    @Override
    protected void onDestroy() {
        if (isChangingConfigurations()) {
            model.show(null);
        } else {
            model.close();
        }
        super.onDestroy();
    }
}
