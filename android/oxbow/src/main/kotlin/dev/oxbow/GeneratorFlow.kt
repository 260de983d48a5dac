package dev.oxbow

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.channels.trySendBlocking
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.transform

/** What [Generator.eventFlow] tells. */
sealed class GenerationEvent {
    /**
     * How much of the prompt was read: first 0, at last [all], in bytes of UTF-8. A message of a chat is read in one step.
     */
    class Prompt internal constructor(val done: Int, val all: Int) : GenerationEvent()

    /**
     * A piece of the text, of whole characters, with the tokens of the text so far, and how many of them the model makes in a second:
     * without the time that the collector took, and not a number before there is one.
     */
    class Piece internal constructor(val text: String, val tokens: Long, val tokensPerSecond: Double) : GenerationEvent()

    /** The text is over: why, and what it took. The last event. */
    class End internal constructor(val generation: Generation) : GenerationEvent()
}

/**
 * The text as it is generated, piece by piece, each of whole characters. Generation runs on [Dispatchers.IO] and waits
 * for a collector that is slower. Cancelling the collector ends it after the token it is at, and the flow is over only
 * when it has ended, so that the session may be used or closed right afterwards. [onEnd] hears how it went, in the
 * collector's context, unless it was cancelled or failed.
 *
 * Nothing happens until the flow is collected; collecting it twice continues the stream twice.
 */
fun Generator.textFlow(prompt: String, onEnd: (Generation) -> Unit = {}): Flow<String> =
    eventFlow(prompt).transform { event ->
        when (event) {
            is GenerationEvent.Prompt -> {}
            is GenerationEvent.Piece -> emit(event.text)
            is GenerationEvent.End -> onEnd(event.generation)
        }
    }

/** As [textFlow], with all that there is to tell: how far the prompt is read, pieces with their rate, and the end. */
fun Generator.eventFlow(prompt: String): Flow<GenerationEvent> = flow {
    coroutineScope {
        val cancellation = Cancellation()
        val events = Channel<GenerationEvent>(Channel.BUFFERED)
        val generation =
            async(Dispatchers.IO) {
                try {
                    generate(prompt, EventListener { event -> events.trySendBlocking(event).isSuccess }, cancellation)
                } finally {
                    events.close()
                }
            }
        try {
            for (event in events) emit(event)
        } finally {
            // Both: the native side may be computing, or waiting for room that nobody makes any more.
            cancellation.cancel()
            events.cancel()
        }
        emit(GenerationEvent.End(generation.await()))
    }
}

/** The whole text at once. Cancelling ends it as it does [textFlow]. */
suspend fun Generator.awaitText(prompt: String): String {
    val text = StringBuilder()
    textFlow(prompt).collect { piece -> text.append(piece) }
    return text.toString()
}

/** [send] tells whether anybody still wants to hear. */
private class EventListener(private val send: (GenerationEvent) -> Boolean) : ProgressListener {
    private var tokens = 0L
    private var tokensPerSecond = Double.NaN

    override fun onPrompt(done: Int, all: Int) {
        send(GenerationEvent.Prompt(done, all))
    }

    override fun onToken(tokens: Long, nanoseconds: Long) {
        this.tokens = tokens
        // The token that was just picked has not been fed yet.
        if (nanoseconds > 0) tokensPerSecond = (tokens - 1) * 1e9 / nanoseconds
    }

    override fun onText(piece: String): Boolean = send(GenerationEvent.Piece(piece, tokens, tokensPerSecond))
}
