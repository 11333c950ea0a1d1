/** The Agave release whose behaviour is implemented, that of the engine's crates. */
export const AGAVE_VERSION = '4.2.1'
