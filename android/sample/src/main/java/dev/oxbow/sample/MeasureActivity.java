package dev.oxbow.sample;

import android.app.Activity;
import android.os.Bundle;
import android.widget.LinearLayout;
import android.widget.ScrollView;
import android.widget.TextView;
import java.util.concurrent.atomic.AtomicBoolean;

/** What a token takes and what memory the library holds, over a stream: both lines are to stay flat. */
public final class MeasureActivity extends Activity {
    /** Free beside texts and charts, in what is a pixel on a screen of usual density. */
    private static final int SIDE = 4;

    private Measurement measurement;
    private TextView words;
    private ChartView times;
    private ChartView memory;
    private final AtomicBoolean frameWanted = new AtomicBoolean();

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setTitle("Over a stream");
        words = new TextView(this);
        times = new ChartView(this, "µs");
        memory = new ChartView(this, "KiB");
        LinearLayout column = new LinearLayout(this);
        column.setOrientation(LinearLayout.VERTICAL);
        int side = (int) (SIDE * getResources().getDisplayMetrics().density);
        column.setPadding(side, 0, side, 0);
        column.addView(words);
        column.addView(heading("Time for a token"));
        column.addView(times);
        column.addView(heading("Memory of the library"));
        column.addView(memory);
        ScrollView scroll = new ScrollView(this);
        scroll.setFitsSystemWindows(true);
        scroll.addView(column);
        setContentView(scroll);
        measurement = (Measurement) getLastNonConfigurationInstance();
        if (measurement == null) {
            measurement = new Measurement(getApplicationContext(), new Settings(this));
        }
        measurement.show(this::wantFrame);
        draw();
    }

    private TextView heading(String text) {
        TextView view = new TextView(this);
        view.setText(text);
        return view;
    }

    private void wantFrame() {
        if (frameWanted.compareAndSet(false, true)) {
            words.postOnAnimation(this::draw);
        }
    }

    private void draw() {
        frameWanted.set(false);
        Measurement.Result result = measurement.result();
        words.setText(result.words);
        times.show(result.microseconds, result.tokensOfPart);
        memory.show(result.kibibytes, result.tokensOfPart);
    }

    @Override
    public Object onRetainNonConfigurationInstance() {
        return measurement;
    }

    @Override
    protected void onDestroy() {
        measurement.show(null);
        if (!isChangingConfigurations()) {
            measurement.stop();
        }
        super.onDestroy();
    }
}
