package android.app;

public class Activity extends android.content.Context implements android.content.ComponentCallbacks2 {
    protected native void onCreate(android.os.Bundle state);

    protected native void onDestroy();

    protected native void onStart();

    protected native void onStop();

    protected native void onSaveInstanceState(android.os.Bundle state);

    public native void onTrimMemory(int level);

    public native boolean isChangingConfigurations();

    public native Object onRetainNonConfigurationInstance();

    public native Object getLastNonConfigurationInstance();

    @Override
    public native android.content.Context getApplicationContext();

    public native void setContentView(android.view.View view);

    public final native void runOnUiThread(Runnable action);

    @Override
    public native android.content.res.AssetManager getAssets();

    public native android.content.res.Resources getResources();

    @Override
    public native java.io.File getNoBackupFilesDir();

    @Override
    public native String getPackageCodePath();

    public native android.content.Intent getIntent();

    public native void startActivity(android.content.Intent intent);

    public native void setTitle(CharSequence title);

    @Override
    public native android.content.SharedPreferences getSharedPreferences(String name, int mode);

    public native android.view.Window getWindow();

    public native java.io.File getExternalFilesDir(String type);

    public native android.content.pm.ApplicationInfo getApplicationInfo();

    @Override
    public native Object getSystemService(String name);
}
