/** Where customers reach the doors that are open in this build. */
export type Endpoints = {
  readonly rpc?: string | undefined
  readonly ws?: string | undefined
  readonly grpc?: string | undefined
  readonly indexer?: string | undefined
  readonly sender?: string | undefined
  readonly execution?: string | undefined
}
