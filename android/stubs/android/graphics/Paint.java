package android.graphics;

public class Paint {
    public static final int ANTI_ALIAS_FLAG = 1;

    public Paint(int flags) {}

    public native void setColor(int color);

    public native void setTextSize(float size);

    public native float getTextSize();

    public native void setStrokeWidth(float width);

    public native float measureText(String text);
}
