package android.widget;

public class TextView extends android.view.View {
    public TextView(android.content.Context context) {
        super(context);
    }

    public final native void setText(CharSequence text);

    public final native void setHint(CharSequence text);

    public final native void append(CharSequence text);

    public native CharSequence getText();

    public native float getTextSize();

    public final native int getCurrentTextColor();
}
