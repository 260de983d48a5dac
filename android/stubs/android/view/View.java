package android.view;

public class View {
    public interface OnClickListener {
        void onClick(View view);
    }

    public View(android.content.Context context) {}

    public native void setOnClickListener(OnClickListener listener);

    public native void setFitsSystemWindows(boolean fits);

    public native void postOnAnimation(Runnable action);
}
