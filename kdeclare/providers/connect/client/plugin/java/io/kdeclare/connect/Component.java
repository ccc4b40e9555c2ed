package io.kdeclare.connect;

/** A part of the worker that applies overrides while it runs. */
interface Component {

    /** Validate the overrides without changing anything. @throws RuntimeException the objection */
    void validate(Candidate candidate);

    /** Apply the overrides, or keep the current state. @throws RuntimeException the objection */
    void apply(Candidate candidate);
}
