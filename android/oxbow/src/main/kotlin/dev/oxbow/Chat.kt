package dev.oxbow

import java.io.Closeable
import java.io.File
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.withContext

/**
 * A chat with a model that was trained to answer: what was said stays in the stream, and only what is new is fed. One caller at a time.
 * Methods that suspend do their work off the caller's thread.
 */
class Chat private constructor(private val model: Model, private val session: Session, private val generator: Generator) :
    Closeable {
    /** The answer to a question, as [Generator.eventFlow] tells it. A question that is cancelled can be taken back with [undo]. */
    fun ask(question: String): Flow<GenerationEvent> = generator.eventFlow(question)

    /** The whole answer at once. */
    suspend fun answer(question: String): String = generator.awaitText(question)

    /** Adds a message and asks nothing: the system's text before the first question, or what was said earlier. */
    suspend fun say(role: Role, text: String) = withContext(Dispatchers.IO) { generator.say(role, text) }

    /** Takes back the last question and its answer, as often as [GeneratorOptions.undoTurns] says. */
    suspend fun undo() = withContext(Dispatchers.IO) { generator.undo() }

    /** Begins a new chat. */
    suspend fun reset() = withContext(Dispatchers.IO) { generator.reset() }

    /** Writes the chat to a file, which is replaced as a whole or not at all. */
    suspend fun save(file: File) = withContext(Dispatchers.IO) { generator.save(file) }

    /** Goes on with a chat that was saved, in this process or in another, with the same model and options. */
    suspend fun resume(file: File) = withContext(Dispatchers.IO) { generator.load(file) }

    /** Frees all its memory; never waits. */
    override fun close() {
        generator.close()
        session.close()
        model.close()
    }

    companion object {
        /**
         * Takes the model: it is closed with the chat, or here if this fails. [options] are those of the answers; they become those of a
         * chat.
         */
        suspend fun create(
            model: Model,
            sessionOptions: SessionOptions = SessionOptions(),
            options: GeneratorOptions = GeneratorOptions(),
        ): Chat =
            try {
                opened {
                    val session = Session.create(model, sessionOptions)
                    try {
                        Chat(model, session, Generator.create(session, options.chat(true)))
                    } catch (e: Throwable) {
                        session.close()
                        throw e
                    }
                }
            } catch (e: Throwable) {
                model.close()
                throw e
            }

        /** Opens a file and begins a chat with it. */
        suspend fun open(
            file: File,
            sessionOptions: SessionOptions = SessionOptions(),
            options: GeneratorOptions = GeneratorOptions(),
        ): Chat = create(openModel(file, OpenOptions().session(sessionOptions)), sessionOptions, options)
    }
}
