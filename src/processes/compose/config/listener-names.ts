/** Every TCP door a process can have, as its metrics name it. */
export const LISTENERS = ['metrics', 'rpc', 'ws', 'grpc', 'sender', 'execution', 'indexer'] as const
