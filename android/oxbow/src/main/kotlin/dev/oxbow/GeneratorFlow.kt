package dev.oxbow

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.channels.awaitClose
import kotlinx.coroutines.channels.trySendBlocking
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.callbackFlow
import kotlinx.coroutines.flow.flowOn
import kotlinx.coroutines.launch

/**
 * The text as it is generated, piece by piece, each of whole characters. Generation runs on [Dispatchers.Default] and
 * waits for a collector that is slower. Cancelling the collector ends it after the token it is at, and the flow is over
 * only when it has ended, so that the session may be used or closed right afterwards. [onEnd] hears how it went, unless
 * it was cancelled or failed.
 *
 * Nothing happens until the flow is collected; collecting it twice continues the stream twice.
 */
fun Generator.textFlow(prompt: String, onEnd: (Generation) -> Unit = {}): Flow<String> =
    callbackFlow {
        val cancellation = Cancellation()
        launch {
            val listener = TextListener { piece -> trySendBlocking(piece).isSuccess }
            onEnd(generate(prompt, listener, cancellation))
            channel.close()
        }
        awaitClose { cancellation.cancel() }
    }.flowOn(Dispatchers.Default)
