package android.graphics;

public class Canvas {
    public native void drawLine(float x0, float y0, float x1, float y1, Paint paint);

    public native void drawCircle(float x, float y, float radius, Paint paint);

    public native void drawText(String text, float x, float y, Paint paint);
}
