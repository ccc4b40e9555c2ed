package io.kdeclare.connect;

/** What to tell people of a failure. */
final class Messages {
    private Messages() { }

    static String of(Throwable failure) {
        if (failure instanceof Refusal refusal) {
            return refusal.line();
        }
        String message = failure.getMessage();
        return message == null || message.isBlank() ? failure.getClass().getSimpleName() : message;
    }
}
