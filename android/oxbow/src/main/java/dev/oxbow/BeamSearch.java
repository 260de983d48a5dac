package dev.oxbow;

import androidx.annotation.WorkerThread;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Follows the likeliest texts side by side, each a stream of its own, and gives the best that ended. For any model whose
 * output is the logits of the next token; one that translates has {@link Session#encode encoded} its text before. Same
 * logits: same texts and scores, on every machine. Serves one thread at a time, and its session is busy while it runs.
 */
public final class BeamSearch extends NativeObject {
    private final Session session;

    private BeamSearch(Session session) {
        this.session = session;
    }

    /**
     * A search for the best text, as the model's makers advise.
     *
     * @param session whose stream it continues
     * @return the search
     */
    public static BeamSearch create(Session session) {
        return create(session, session.getModel().getAdvisedBeams());
    }

    /**
     * A search with options. Its memory is that of all beams but one, which is the session's own: {@link
     * SessionPlan#getBeamBytes} each.
     *
     * @param session whose stream it continues
     * @param options how to search
     * @return the search
     */
    public static BeamSearch create(Session session, BeamOptions options) {
        BeamSearch search = new BeamSearch(session);
        search.own(
                search.create(
                        session,
                        session.handle(),
                        options.beams,
                        options.nBest,
                        options.maxTokens,
                        options.minTokens,
                        options.lengthPenalty,
                        options.stop.ordinal()));
        return search;
    }

    /** {@return the session that it continues} */
    public Session getSession() {
        return session;
    }

    /**
     * Continues the session's stream with a prompt, or without one with the model's start token, until the search ends.
     * The stream then holds one of the beams: encode or reset before the next text.
     *
     * @param prompt its tokens; none: the model's start token
     * @return the texts, the best first
     */
    @WorkerThread
    public List<BeamText> run(int... prompt) {
        int count = run(handle(), session, session.handle(), Objects.requireNonNull(prompt));
        List<BeamText> texts = new ArrayList<>(count);
        float[] score = new float[1];
        for (int i = 0; i < count; ++i) {
            int[] tokens = result(handle(), session, session.handle(), i, score);
            texts.add(new BeamText(tokens, score[0]));
        }
        return texts;
    }

    private native long create(
            Session session,
            long sessionHandle,
            int beams,
            int nBest,
            int maxTokens,
            int minTokens,
            double lengthPenalty,
            int stop);

    private native int run(long handle, Session session, long sessionHandle, int[] prompt);

    private native int[] result(long handle, Session session, long sessionHandle, int index, float[] score);
}
