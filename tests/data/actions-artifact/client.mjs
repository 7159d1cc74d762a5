// Artifacts by GitHub's own client: `node client.mjs upload NAME FOLDER FILE...` or `node client.mjs download NAME FOLDER`.
import client from '@actions/artifact'

const [order, name, folder, ...files] = process.argv.slice(2)
const result =
  order === 'upload'
    ? await client.uploadArtifact(name, files, folder, { retentionDays: 7 })
    : await fetchArtifact()
console.log(`\nRESULT ${JSON.stringify(result)}`)

async function fetchArtifact() {
  const { artifact } = await client.getArtifact(name)
  return { artifact, ...(await client.downloadArtifact(artifact.id, { path: folder, expectedHash: artifact.digest })) }
}
