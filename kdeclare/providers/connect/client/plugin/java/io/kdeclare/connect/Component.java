package io.kdeclare.connect;

/** A part of the worker that takes overrides while it runs. */
interface Component {

    /** Look at the overrides; change nothing. @throws RuntimeException the objection */
    void validate(Candidate candidate);

    /** Take the overrides, or keep what was in force. @throws RuntimeException the objection */
    void apply(Candidate candidate);
}
