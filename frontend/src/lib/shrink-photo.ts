/** Shrinks photos: documents stay readable, but a phone's twelve megapixels need not be sent over a slow line. */

/** Pixels of the longer side. */
const LONGEST = 2_000;
const QUALITY = 0.8;
/** Smaller files are sent unchanged, in bytes. */
const SMALL = 400_000;

/**
 * The photo as a smaller JPEG without location data, or the file itself if it is no photo, small enough, or unreadable
 * here.
 */
export async function shrinkPhoto(file: File): Promise<File> {
  if (!/^image\/(?:jpeg|png)$/.test(file.type) || file.size <= SMALL) return file;
  const address = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const scale = Math.min(1, LONGEST / Math.max(image.naturalWidth, image.naturalHeight));
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(image.naturalWidth * scale);
    canvas.height = Math.round(image.naturalHeight * scale);
    const drawing = canvas.getContext("2d");
    if (!drawing) return file;
    // white background for transparent PNGs
    drawing.fillStyle = "#fff";
    drawing.fillRect(0, 0, canvas.width, canvas.height);
    drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
    const made = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/jpeg", QUALITY));
    if (made === null || made.size >= file.size) return file;
    return new File([made], file.name.replace(/\.(?:png|jpe?g)$/i, "") + ".jpg", { type: "image/jpeg" });
  } catch {
    return file; // the server says what is wrong with it
  } finally {
    URL.revokeObjectURL(address);
  }
}
