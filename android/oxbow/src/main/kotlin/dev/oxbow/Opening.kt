package dev.oxbow

import android.content.res.AssetFileDescriptor
import android.os.ParcelFileDescriptor
import java.io.Closeable
import java.io.File
import java.nio.ByteBuffer
import kotlin.coroutines.coroutineContext
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext

/** Opens a file, off the caller's thread. What was opened for a caller that is cancelled meanwhile is closed. */
suspend fun openModel(file: File, options: OpenOptions = OpenOptions()): Model = opened { Model.open(file, options) }

/** Opens an asset that is stored, not compressed: see [AndroidFiles]. */
suspend fun openModel(asset: AssetFileDescriptor, options: OpenOptions = OpenOptions()): Model =
    opened { AndroidFiles.open(asset, options) }

/** Opens what `ContentResolver.openFileDescriptor(uri, "r")` gives: see [AndroidFiles]. */
suspend fun openModel(file: ParcelFileDescriptor, options: OpenOptions = OpenOptions()): Model =
    opened { AndroidFiles.open(file, options) }

/** Opens the bytes of a direct buffer, which stay there: see [Model.open]. */
suspend fun openModel(bytes: ByteBuffer, options: OpenOptions = OpenOptions()): Model = opened { Model.open(bytes, options) }

/** A session: with Vulkan its shaders are compiled here, which takes a second the first time. */
suspend fun Model.createSession(options: SessionOptions = SessionOptions()): Session =
    opened { Session.create(this, options) }

/** A generator of this session. */
suspend fun Session.createGenerator(options: GeneratorOptions = GeneratorOptions()): Generator =
    opened { Generator.create(this, options) }

/** A model that answers one text with one answer. */
suspend fun openTextModel(file: File, options: SessionOptions = SessionOptions()): TextModel =
    opened { TextModel.open(file.path, options) }

/** On a thread that may wait. Nobody would close what a cancelled caller never sees, so it is closed here. */
internal suspend fun <T : Closeable> opened(open: () -> T): T {
    var made: T? = null
    try {
        withContext(Dispatchers.IO) { made = open() }
        coroutineContext.ensureActive()
        return made!!.also { made = null }
    } finally {
        made?.close()
    }
}
