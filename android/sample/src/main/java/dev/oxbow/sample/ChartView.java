package dev.oxbow.sample;

import android.content.Context;
import android.graphics.Canvas;
import android.graphics.Paint;
import android.view.View;
import android.widget.TextView;
import java.util.Locale;

/** A curve over the stream: from 0 to the largest value, with both ends named. Its colours are those of text on the screen. */
final class ChartView extends View {
    private static final float LINE = 2;
    private static final float DOT = 3;
    private static final int CURVE = 0xff2f7ed8;

    private final Paint text = new Paint(Paint.ANTI_ALIAS_FLAG);
    private final Paint line = new Paint(Paint.ANTI_ALIAS_FLAG);
    private final String unit;
    private float[] values = {};
    private int tokensOfPart;

    ChartView(Context context, String unit) {
        super(context);
        this.unit = unit;
        // As large and as dark as the system's texts are now.
        TextView like = new TextView(context);
        text.setTextSize(like.getTextSize());
        text.setColor(like.getCurrentTextColor());
        line.setColor(CURVE);
        line.setStrokeWidth(LINE * density());
    }

    void show(float[] next, int tokens) {
        values = next;
        tokensOfPart = tokens;
        String last = next.length == 0 ? "" : words(next[next.length - 1]);
        // For who does not see the picture.
        setContentDescription(String.format(Locale.ROOT, "%s after %d tokens", last, next.length * tokens));
        invalidate();
    }

    private float density() {
        return getResources().getDisplayMetrics().density;
    }

    private String words(float value) {
        return String.format(Locale.ROOT, value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
    }

    @Override
    protected void onMeasure(int width, int height) {
        setMeasuredDimension(MeasureSpec.getSize(width), (int) (6 * text.getTextSize() + 80 * density()));
    }

    @Override
    protected void onDraw(Canvas canvas) {
        float space = text.getTextSize() * 1.4f;
        float top = space;
        float bottom = getHeight() - space;
        float right = getWidth();
        float largest = 0;
        for (float value : values) {
            largest = Math.max(largest, value);
        }
        canvas.drawLine(0, bottom, right, bottom, text);
        if (values.length == 0 || largest == 0) {
            return;
        }
        canvas.drawText(words(largest), 0, top - space / 3, text);
        String end = String.format(Locale.ROOT, "%,d tokens", values.length * tokensOfPart);
        canvas.drawText(end, right - text.measureText(end), getHeight() - space / 4, text);
        canvas.drawText("0", 0, getHeight() - space / 4, text);
        float step = right / values.length;
        for (int i = 0; i < values.length; ++i) {
            float x = (i + 0.5f) * step;
            float y = bottom - (bottom - top) * values[i] / largest;
            canvas.drawCircle(x, y, DOT * density(), line);
            if (i > 0) {
                canvas.drawLine(x - step, bottom - (bottom - top) * values[i - 1] / largest, x, y, line);
            }
        }
    }
}
