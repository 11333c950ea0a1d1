/** Also the limit of a reloaded configuration. */
export const NODES_MAX = 64
