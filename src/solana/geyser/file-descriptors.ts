import { type DescFile, type DescMessage, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'

/** The proto files of some services, as clients of gRPC reflection ask for them. */
export type FileDescriptors = {
  /** Full names of the services. */
  readonly services: readonly string[]
  /** The encoded descriptors of a file and of everything it imports, the file first; undefined where it is not known. */
  byName(name: string): readonly Uint8Array[] | undefined
  /** The same for the file that defines a service, method, message or enum, by its full name. */
  bySymbol(symbol: string): readonly Uint8Array[] | undefined
  isMessage(name: string): boolean
}

export function createFileDescriptors(roots: readonly DescFile[]): FileDescriptors {
  const files = new Map<string, DescFile>()
  const add = (file: DescFile): void => {
    if (files.has(file.proto.name)) return
    files.set(file.proto.name, file)
    file.dependencies.forEach(add)
  }
  roots.forEach(add)
  const encoded = new Map([...files].map(([name, { proto }]) => [name, toBinary(FileDescriptorProtoSchema, proto)]))
  const symbols = new Map<string, string>()
  const messages = new Set<string>()
  for (const [name, file] of files) {
    const addMessage = ({ typeName, nestedMessages, nestedEnums }: DescMessage): void => {
      symbols.set(typeName, name)
      messages.add(typeName)
      for (const nested of nestedEnums) symbols.set(nested.typeName, name)
      nestedMessages.forEach(addMessage)
    }
    file.messages.forEach(addMessage)
    for (const { typeName } of file.enums) symbols.set(typeName, name)
    for (const service of file.services) {
      symbols.set(service.typeName, name)
      for (const method of service.methods) symbols.set(`${service.typeName}.${method.name}`, name)
    }
  }

  function byName(name: string): readonly Uint8Array[] | undefined {
    const file = files.get(name)
    if (file === undefined) return undefined
    const names = new Set<string>()
    const collect = ({ proto, dependencies }: DescFile): void => {
      names.add(proto.name)
      dependencies.forEach(collect)
    }
    collect(file)
    return [...names].map((one) => encoded.get(one) as Uint8Array)
  }

  return {
    services: roots.flatMap((file) => file.services.map(({ typeName }) => typeName)),
    byName,
    bySymbol(symbol) {
      const name = symbols.get(symbol)
      return name === undefined ? undefined : byName(name)
    },
    isMessage: (name) => messages.has(name),
  }
}
