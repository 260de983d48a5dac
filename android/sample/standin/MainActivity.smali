# Stands in for the sample's activity in an APK that is assembled where no dexer is (scripts/build-sample-apk): loads the
# native library and shows nothing.
.class public final Ldev/oxbow/sample/MainActivity;
.super Landroid/app/Activity;

.method static constructor <clinit>()V
    .registers 1
    const-string v0, "oxbow_jni"
    invoke-static {v0}, Ljava/lang/System;->loadLibrary(Ljava/lang/String;)V
    return-void
.end method

.method public constructor <init>()V
    .registers 1
    invoke-direct {p0}, Landroid/app/Activity;-><init>()V
    return-void
.end method
