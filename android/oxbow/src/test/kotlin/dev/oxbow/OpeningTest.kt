package dev.oxbow

import java.io.Closeable
import java.io.RandomAccessFile
import java.nio.channels.FileChannel
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** Opening and creating without waiting on the caller's thread. */
class OpeningTest : Fixture() {
    private val file = FILES.resolve("demo.oxb").toFile()

    @Test
    fun modelSessionAndGenerator() = runBlocking {
        openModel(file).use { model ->
            model.createSession(SessionOptions().threads(2)).use { session ->
                session.createGenerator(Tool.options()).use { generator ->
                    assertEquals(read("demo.txt"), generator.awaitText(read("prompt.txt")))
                }
            }
        }
    }

    @Test
    fun theBytesOfABuffer() = runBlocking {
        val mapped = RandomAccessFile(file, "r").use { it.channel.map(FileChannel.MapMode.READ_ONLY, 0, file.length()) }
        openModel(mapped).use { model -> assertTrue(model.parameters > 0) }
    }

    @Test
    fun theWorkIsDoneOnAnotherThread() = runBlocking {
        val threads = mutableSetOf<Thread>()
        openModel(file, OpenOptions().log { _, _ -> threads.add(Thread.currentThread()) }).use { model ->
            model.createSession().close()
        }
        assertTrue(threads.isNotEmpty())
        assertTrue(Thread.currentThread() !in threads)
    }

    @Test
    fun aFileThatIsNoModelIsOfItsKind() {
        val refused =
            assertThrows(ModelFileException::class.java) {
                runBlocking { openModel(FILES.resolve("prompt.txt").toFile()) }
            }
        assertNotEquals(0, refused.code)
    }

    private class Watched(private val closed: () -> Unit) : Closeable {
        override fun close() = closed()
    }

    /** Nobody else could close it. */
    @Test
    fun whatACancelledCallerNeverSeesIsClosed() = runBlocking {
        var open = 0
        repeat(100) { i ->
            val job =
                launch(Dispatchers.Default) {
                    opened {
                        ++open
                        Thread.sleep(5)
                        Watched { --open }
                    }
                        .close()
                }
            delay(i % 8L)
            job.cancel()
            job.join()
            assertEquals(0, open)
        }
    }

    @Test
    fun aModelThatIsOpenedForACancelledCallerIsClosed() = runBlocking {
        repeat(100) { i ->
            val job = launch(Dispatchers.Default) { openModel(file).use { model -> model.createSession().close() } }
            if (i % 4 > 0) delay(i % 4L)
            job.cancel()
            job.join()
        }
        // The fixture counts what is left.
    }
}
