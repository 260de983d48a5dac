package android.view;

public class View {
    public interface OnClickListener {
        void onClick(View view);
    }

    public View(android.content.Context context) {}

    public native void setOnClickListener(OnClickListener listener);

    public native void setFitsSystemWindows(boolean fits);

    public native void postOnAnimation(Runnable action);

    public static class MeasureSpec {
        public static native int getSize(int spec);
    }

    protected native void onMeasure(int width, int height);

    protected final native void setMeasuredDimension(int width, int height);

    protected native void onDraw(android.graphics.Canvas canvas);

    public native void invalidate();

    public native void setPadding(int left, int top, int right, int bottom);

    public native void setContentDescription(CharSequence text);

    public final native int getWidth();

    public final native int getHeight();

    public final native android.content.res.Resources getResources();
}
