import { parentPort, workerData } from 'node:worker_threads'
import { type AdmitTask, createAdmitCalls } from './admit-calls.ts'

/** Admits calls for as many milliseconds as each message says, and posts the figures. */
const { admitFor } = createAdmitCalls(workerData as AdmitTask)
parentPort?.on('message', (ms: number) => parentPort?.postMessage(admitFor(ms)))
